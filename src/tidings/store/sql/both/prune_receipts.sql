-- Delete receipts of a deleted message.
delete from receipts where task = :id and not exists (select 1 from tasks where id = :id)
