-- Delete a follow-up whose task is deleted.
delete from followups where task = :id and not exists (select 1 from tasks where id = :id)
