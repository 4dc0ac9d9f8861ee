-- Other options, by the one who has seen the newest.
update broadcasts set options = :options, version = version + 1, paced_to = null,
  check_at = case when state = 'running' then coalesce(cast(:now as bigint), tidings_now()) else check_at end,
  changed_at = coalesce(cast(:now as bigint), tidings_now())
where group_id = :group_id and version = :version
returning group_id
