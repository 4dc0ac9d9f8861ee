-- The next ids of the database's sequence, and its time. Own file: SQLite numbers rows by itself.
select array_agg(nextval('task_ids')) as ids, (select coalesce(:now::bigint, tidings_now())) as now
from generate_series(1, :n::int)
