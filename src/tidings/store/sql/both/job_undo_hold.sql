-- Lock a finished job for its undo; a lock of a dead process expires.
update jobs set blocked_until = coalesce(cast(:now as bigint), tidings_now()) + :lease, version = version + 1
where n = :n and version = :version and state in ('completed', 'failed', 'cancelled') and not pruning
returning version
