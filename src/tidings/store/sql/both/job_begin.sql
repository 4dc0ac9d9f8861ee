-- A job begins to plan or to run; a new round reads the source anew.
update jobs set state = :state, resume_state = null, reason = null, blocked_until = null, check_at = 0, round = round + :rounds,
  lookup = cast(:lookup as boolean), planned = cast(:planned as boolean), version = version + 1,
  changed_at = coalesce(cast(:now as bigint), tidings_now()), started_at = coalesce(cast(:now as bigint), tidings_now()),
    ended_at = null, done_before = :done, pruning = false, pruned_at = null
where n = :n and version = :version and state = :expected
returning n
