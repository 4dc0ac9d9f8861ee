-- What a look at a session found. One that comes back starts with its breaker closed: it was about the old one.
update queues set session_state = :session_state, session_reason = :why, reconnects = :attempts, session_reported = :told, lost_at = :lost_at,
  retry_at = :retry_at, check_at = :check_at, was_down = :was_down, restart_wanted = false, restarted_at = :restarted_at,
  session_since = case when session_state = :session_state then session_since else coalesce(cast(:now as bigint), tidings_now()) end,
  failures = case when :is_back then 0 else failures end,
  opened_at = case when :is_back then null else opened_at end,
  probe_at = case when :is_back then null else probe_at end,
  blocked_until = case when :is_back and block_reason = 'breaker open' then null else blocked_until end,
  block_reason = case when :is_back and block_reason = 'breaker open' then null else block_reason end
where name = :name and check_no = :check_no
returning name
