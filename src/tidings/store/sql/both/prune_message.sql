-- Forget the content of a task that is gone.
delete from messages where task = :id and not exists (select 1 from tasks where id = :id)
