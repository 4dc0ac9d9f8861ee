-- Forget a lot.
delete from lots where id = :lot
