-- Another state of a job, if it is still as it was looked at.
update jobs set state = :state, resume_state = :resume_state, reason = :reason, blocked_until = :blocked_until, check_at = 0,
  version = version + 1, changed_at = coalesce(cast(:now as bigint), tidings_now()),
  ended_at = case when cast(:is_over as boolean) then coalesce(cast(:now as bigint), tidings_now()) end
where n = :n and version = :version and state = :expected
returning n
