-- Mark a message as deleted by its author, in its own conversation; some platforms do not say who deletes. The row stays.
update inbox set deleted_at = :at
where source = :source and platform_id = :original and chat = :chat and (sender = :sender or :sender = '') and deleted_at is null
