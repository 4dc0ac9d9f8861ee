-- All rows of the job are deleted.
update jobs set pruned_at = coalesce(cast(:now as bigint), tidings_now())
where n = :n and pruning and pruned_at is null
returning n
