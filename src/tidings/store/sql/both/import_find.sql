-- One run.
select id, source, began_at, ended_at, undone_at, taken from imports where id = :id and tenant = :tenant
