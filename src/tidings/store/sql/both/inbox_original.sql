-- The message that an edit or a delete is about.
select id, sender, chat from inbox where source = :source and platform_id = :original
