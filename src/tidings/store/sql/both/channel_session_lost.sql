-- A send found the session gone. Results of claims made before the last reconnect are ignored.
update queues set session_state = :session_state, session_reason = :why, lost_at = coalesce(lost_at, cast(:now as bigint), tidings_now()),
  session_since = coalesce(cast(:now as bigint), tidings_now()), retry_at = null, check_at = 0, check_no = check_no + 1, restart_wanted = :restart
where name = :name and session_since <= :claimed_at
  and (session_state = 'connected' or (session_state = 'reconnecting' and cast(:session_state as text) = 'logged_out'))
returning name
