-- Mark a message as edited by its author, in its own conversation; the newest edit wins.
update inbox set edited_text = :text, edited_at = :at
where source = :source and platform_id = :original and chat = :chat and sender = :sender and coalesce(edited_at, 0) <= :at
