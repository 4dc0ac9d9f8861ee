-- Another state of a job, if it is still as it was looked at.
update jobs set state = :state, held = :held, reason = :reason, parked_until = :parked_until, look_at = 0,
  version = version + 1, changed_at = coalesce(cast(:now as bigint), tidings_now()),
  ended_at = case when cast(:is_over as boolean) then coalesce(cast(:now as bigint), tidings_now()) end
where n = :n and version = :version and state = :expected
returning n
