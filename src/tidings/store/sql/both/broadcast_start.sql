-- Start what waits for its time or for a call; whoever comes second changes nothing.
update broadcasts set state = 'pending', started_at = coalesce(cast(:now as bigint), tidings_now()),
  look_at = coalesce(cast(:now as bigint), tidings_now()), changed_at = coalesce(cast(:now as bigint), tidings_now())
where lot = :lot and state = 'new'
returning lot
