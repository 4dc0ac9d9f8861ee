-- Start again: lifts a pause, parking and an open breaker; at a session somebody looks at once.
update queues set paused = false, halted = false, pause_reason = null, parked_until = null, park_reason = null,
  failures = 0, opened_at = null, probe_at = null, look_at = 0
where name = :name returning name
