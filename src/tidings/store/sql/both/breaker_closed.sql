-- The first success after failures closes the breaker.
update queues set failures = 0, opened_at = null, probe_at = null,
  parked_until = case when park_reason = 'breaker open' then null else parked_until end,
  park_reason = case when park_reason = 'breaker open' then null else park_reason end
where name = :name and (failures > 0 or opened_at is not null)
  and (opened_at is null or :claimed_at > opened_at)
returning name
