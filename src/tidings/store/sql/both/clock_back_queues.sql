-- Throttled channels, breakers and sessions wait as long as they would have.
update queues set
  blocked_until = case when blocked_until > :at
    then blocked_until - :back else blocked_until end,
  opened_at = case when opened_at > :at
    then opened_at - :back else opened_at end,
  probe_at = case when probe_at > :at
    then probe_at - :back else probe_at end,
  lost_at = case when lost_at > :at
    then lost_at - :back else lost_at end,
  retry_at = case when retry_at > :at
    then retry_at - :back else retry_at end,
  check_at = case when check_at > :at
    then check_at - :back else check_at end
where blocked_until > :at or opened_at > :at or probe_at > :at or lost_at > :at or retry_at > :at or check_at > :at
