-- Give it up, in any state that is not an end yet; the pump then cancels what is open.
update broadcasts set state = 'cancelled', reason = :reason, retry_to = null,
  check_at = coalesce(cast(:now as bigint), tidings_now()),
  ended_at = coalesce(cast(:now as bigint), tidings_now()), changed_at = coalesce(cast(:now as bigint), tidings_now())
where group_id = :group_id and state = :expected
returning group_id
