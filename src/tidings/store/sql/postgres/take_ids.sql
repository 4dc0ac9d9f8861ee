-- The next ids of the database's sequence, and its time. Own file: SQLite numbers rows by itself.
select nextval('task_ids') as id, coalesce(:now::bigint, tidings_now()) as now from generate_series(1, :n::int)
