-- What a look at a session found. One that comes back starts with its breaker closed: it was about the old one.
update queues set link = :link, link_why = :why, link_tries = :tries, link_told = :told, lost_at = :lost_at,
  retry_at = :retry_at, look_at = :look_at,
  link_since = case when link = :link then link_since else coalesce(cast(:now as bigint), tidings_now()) end,
  failures = case when :is_back then 0 else failures end,
  opened_at = case when :is_back then null else opened_at end,
  probe_at = case when :is_back then null else probe_at end,
  parked_until = case when :is_back and park_reason = 'breaker open' then null else parked_until end,
  park_reason = case when :is_back and park_reason = 'breaker open' then null else park_reason end
where name = :name and look_no = :look_no
returning name
