-- Delete the content of a deleted task.
delete from messages where task = :id and not exists (select 1 from tasks where id = :id)
