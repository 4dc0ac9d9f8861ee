-- Mark a message as deleted by its sender. The row stays.
update inbox set deleted_at = :at where source = :source and platform_id = :original and deleted_at is null
