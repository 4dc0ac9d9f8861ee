-- Start the failed ones afresh, from the first on; the pump takes them a window at a time.
update broadcasts set state = 'running', reason = null, ended_at = null, retry_to = :place, retry_unknown = :unknown,
  options = :options, version = version + 1,
  check_at = coalesce(cast(:now as bigint), tidings_now()), changed_at = coalesce(cast(:now as bigint), tidings_now())
where group_id = :group_id and state = :expected and version = :version
returning group_id
