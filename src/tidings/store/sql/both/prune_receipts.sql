-- Forget what was told of a message that is gone.
delete from receipts where task = :id and not exists (select 1 from tasks where id = :id)
