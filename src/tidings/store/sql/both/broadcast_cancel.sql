-- Give it up, in any state that is not an end yet; the pump then cancels what is open.
update broadcasts set state = 'cancelled', reason = :reason, retry_to = null,
  look_at = coalesce(cast(:now as bigint), tidings_now()),
  ended_at = coalesce(cast(:now as bigint), tidings_now()), changed_at = coalesce(cast(:now as bigint), tidings_now())
where lot = :lot and state = :expected
returning lot
