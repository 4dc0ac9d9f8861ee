-- Start again: lifts a pause, parking and an open breaker; at a session somebody looks at once.
update queues set paused = false, paused_by_engine = false, pause_reason = null, blocked_until = null, block_reason = null,
  failures = 0, opened_at = null, probe_at = null, check_at = 0
where name = :name returning name
