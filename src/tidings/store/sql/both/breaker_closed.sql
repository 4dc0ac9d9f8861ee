-- The first success after failures closes the breaker.
update queues set failures = 0, opened_at = null, probe_at = null,
  blocked_until = case when block_reason = 'breaker open' then null else blocked_until end,
  block_reason = case when block_reason = 'breaker open' then null else block_reason end
where name = :name and (failures > 0 or opened_at is not null)
  and (opened_at is null or :claimed_at > opened_at)
returning name
