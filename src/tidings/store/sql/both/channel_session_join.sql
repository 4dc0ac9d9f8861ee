-- Make a session known. One that nobody has looked at for a while is not trusted until somebody has.
update queues set session_state = 'reconnecting', session_reason = 'nobody has looked yet', check_at = 0, check_no = check_no + 1,
  was_down = false,
  session_since = coalesce(cast(:now as bigint), tidings_now()), lost_at = coalesce(cast(:now as bigint), tidings_now()),
  retry_at = coalesce(cast(:now as bigint), tidings_now())
where name = :name
  and (session_state is null or (session_state = 'connected' and check_at + :stale < coalesce(cast(:now as bigint), tidings_now())))
