-- Resume; the feeder moves deferred recipients back and gives them the time that was lost.
update broadcasts set state = 'running', reason = null, ended_at = null, paced_to = null, options = :options,
  version = version + 1,
  paused_for = coalesce(cast(:now as bigint), tidings_now()) - coalesce(paused_at, cast(:now as bigint), tidings_now()),
  check_at = coalesce(cast(:now as bigint), tidings_now()), changed_at = coalesce(cast(:now as bigint), tidings_now())
where group_id = :group_id and state = :expected and version = :version
returning group_id
