-- Runs, newest first.
select id, source, began_at, ended_at, undone_at, taken from imports where tenant = :tenant order by id desc limit :limit
