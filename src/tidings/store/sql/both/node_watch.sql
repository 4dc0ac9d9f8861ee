-- Note that each other live node was watched now. A gap between two watches counts for at most :most, so that time in
-- which nobody could watch (an outage of the database, a clock that was set) hardly counts. One watcher per :least is enough.
update nodes set
  silent_for = case
    when watched_heartbeat <> heartbeat or watched_at > coalesce(cast(:now as bigint), tidings_now()) then 0
    when coalesce(cast(:now as bigint), tidings_now()) - watched_at > :most then silent_for + :most
    else silent_for + coalesce(cast(:now as bigint), tidings_now()) - watched_at end,
  watched_heartbeat = heartbeat, watched_at = coalesce(cast(:now as bigint), tidings_now())
where state = 'live' and id <> :me
  and (watched_heartbeat <> heartbeat or watched_at > coalesce(cast(:now as bigint), tidings_now())
    or watched_at <= coalesce(cast(:now as bigint), tidings_now()) - :least)
