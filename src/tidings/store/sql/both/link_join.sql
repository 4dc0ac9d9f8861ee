-- Make a session known. One that nobody has looked at for a while is not trusted until somebody has.
update queues set link = 'reconnecting', link_why = 'nobody has looked yet', look_at = 0, look_no = look_no + 1,
  link_since = coalesce(cast(:now as bigint), tidings_now()), lost_at = coalesce(cast(:now as bigint), tidings_now()),
  retry_at = coalesce(cast(:now as bigint), tidings_now())
where name = :name
  and (link is null or (link = 'connected' and look_at + :stale < coalesce(cast(:now as bigint), tidings_now())))
