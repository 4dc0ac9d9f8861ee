-- The end, or a stop by a rule or a person; only from the state that was judged. `parks`: what is open is set aside.
update broadcasts set state = :state, reason = :reason, check_at = :check_at, retry_to = null,
  paused_at = case when :parks then coalesce(paused_at, cast(:now as bigint), tidings_now()) else paused_at end,
  ended_at = coalesce(cast(:now as bigint), tidings_now()), changed_at = coalesce(cast(:now as bigint), tidings_now())
where group_id = :group_id and state = :expected and taken = :taken and coalesce(retry_to, -1) = :retry_to
returning group_id
