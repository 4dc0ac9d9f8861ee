-- Take the periodic check of a job; another node finds it taken.
update jobs set check_at = coalesce(cast(:now as bigint), tidings_now()) + :lease
where n = :n and check_at = :seen and state in ('planning', 'running', 'paused')
returning n, id, tenant, name, pair, state, resume_state, reason, blocked_until, check_at, round, lookup, planned,
  version, mapping_hash, definition, created_at, changed_at, started_at, ended_at, done_before, pruning, pruned_at,
  coalesce(cast(:now as bigint), tidings_now()) as now
