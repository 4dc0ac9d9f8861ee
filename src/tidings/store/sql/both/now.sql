-- The database's time.
select coalesce(cast(:now as bigint), tidings_now()) as now
