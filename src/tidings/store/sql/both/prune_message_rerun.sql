-- Delete the re-run record of a deleted task.
delete from message_reruns where task = :id and not exists (select 1 from tasks where id = :id)
