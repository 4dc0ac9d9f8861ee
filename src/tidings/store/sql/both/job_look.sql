-- Take the look; whoever is late finds it taken.
update jobs set look_at = coalesce(cast(:now as bigint), tidings_now()) + :lease
where n = :n and look_at = :seen and state in ('planning', 'running', 'paused')
returning n, id, tenant, name, pair, state, held, reason, parked_until, look_at, round, looks, planned,
  version, mapping_hash, definition, created_at, changed_at, started_at, ended_at, done_before, forgets, forgotten_at,
  coalesce(cast(:now as bigint), tidings_now()) as now
