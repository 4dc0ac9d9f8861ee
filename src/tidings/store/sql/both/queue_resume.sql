-- Start again: lifts a pause, parking and an open breaker.
update queues set paused = false, pause_reason = null, parked_until = null, park_reason = null,
  failures = 0, opened_at = null, probe_at = null
where name = :name returning name
