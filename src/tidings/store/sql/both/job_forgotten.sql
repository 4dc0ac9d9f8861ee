-- All of it is gone.
update jobs set forgotten_at = coalesce(cast(:now as bigint), tidings_now())
where n = :n and forgets and forgotten_at is null
returning n
