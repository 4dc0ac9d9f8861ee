-- A job that is over begins to forget its records: nobody replays them from now on.
update jobs set pruning = true, version = version + 1
where n = :n and version = :version and state in ('completed', 'failed', 'cancelled') and not pruning
returning n
