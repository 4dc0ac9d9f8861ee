-- Start a broadcast that waits for its time or a trigger; a second call changes nothing.
update broadcasts set state = 'running', started_at = coalesce(cast(:now as bigint), tidings_now()),
  check_at = coalesce(cast(:now as bigint), tidings_now()), changed_at = coalesce(cast(:now as bigint), tidings_now())
where group_id = :group_id and state = 'ready'
returning group_id
