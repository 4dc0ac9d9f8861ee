-- Stop a job that works, with the reason: until somebody resumes it, or until an instant.
update jobs set resume_state = state, state = 'paused', reason = :reason, blocked_until = :until,
  check_at = coalesce(cast(:until as bigint), 0),
  version = version + 1, changed_at = coalesce(cast(:now as bigint), tidings_now())
where n = :n and state in ('planning', 'running')
returning n
