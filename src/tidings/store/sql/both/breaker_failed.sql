-- Count consecutive failures; at the threshold the breaker opens and the queue is blocked.
-- Results of claims made before it opened say nothing new and are ignored.
update queues set
  failures = case when :reset then 0 else failures end + :count,
  opened_at = case when case when :reset then 0 else failures end + :count >= :threshold or probe_at is not null
                   then coalesce(cast(:now as bigint), tidings_now()) else opened_at end,
  blocked_until = case when case when :reset then 0 else failures end + :count >= :threshold or probe_at is not null
                      then coalesce(cast(:now as bigint), tidings_now()) + :cooldown else blocked_until end,
  block_reason = case when case when :reset then 0 else failures end + :count >= :threshold or probe_at is not null
                     then 'breaker open' else block_reason end,
  probe_at = null
where name = :name and (opened_at is null or :claimed_at > opened_at)
returning name, failures, opened_at, blocked_until
