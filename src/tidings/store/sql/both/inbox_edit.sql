-- Mark a message as edited; the newest edit wins.
update inbox set edited_text = :text, edited_at = :at
where source = :source and platform_id = :original and coalesce(edited_at, 0) <= :at
