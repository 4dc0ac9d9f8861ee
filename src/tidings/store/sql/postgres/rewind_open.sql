-- The database has gone back: one row for each server on which that is found, whichever node comes first. The same server
-- again (:again: the node knew it before) is another rewind only ten minutes later. Ids that were given out on the lost copy
-- are not given out again. Own file: SQLite has no sequence, and no copy to fail over to.
with opened as (
  insert into rewinds (server, survived_at, found_at) values (:server, :survived_at, coalesce(:now::bigint, tidings_now()))
  on conflict (server) do update set survived_at = excluded.survived_at, found_at = excluded.found_at, touched_at = 0,
    finished_at = null, node = null, unknown = 0
  where :again::bool and rewinds.finished_at is not null and rewinds.found_at < excluded.found_at - 600000000
  returning found_at
)
select found_at, setval('task_ids', nextval('task_ids') + 1000000) as newest from opened
