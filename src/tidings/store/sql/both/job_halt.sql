-- Stop a job that works, with the reason: until somebody resumes it, or until an instant.
update jobs set held = state, state = 'paused', reason = :reason, parked_until = :until,
  look_at = coalesce(cast(:until as bigint), 0),
  version = version + 1, changed_at = coalesce(cast(:now as bigint), tidings_now())
where n = :n and state in ('planning', 'running')
returning n
