-- A job that is over is undone by one at a time, and not begun meanwhile; whoever has died loses it with time.
update jobs set blocked_until = coalesce(cast(:now as bigint), tidings_now()) + :lease, version = version + 1
where n = :n and version = :version and state in ('completed', 'failed', 'cancelled') and not pruning
returning version
