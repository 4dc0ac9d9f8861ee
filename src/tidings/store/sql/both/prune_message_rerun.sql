-- Forget which message was worked through again, once its task is gone.
delete from message_reruns where task = :id and not exists (select 1 from tasks where id = :id)
