-- This queue has no session (any more).
update queues set session_state = null, session_reason = null, session_since = null, session_reported = null, reconnects = 0, lost_at = null,
  retry_at = null, was_down = false, restart_wanted = false, restarted_at = null
where name = :name and session_state is not null
