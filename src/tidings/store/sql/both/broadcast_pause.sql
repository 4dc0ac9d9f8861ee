-- Take no more recipients; the pump then parks what is open. `passes` says that its first few were the reason.
update broadcasts set state = 'paused', reason = :reason, gate = case when :passes then null else gate end,
  paused_at = coalesce(paused_at, cast(:now as bigint), tidings_now()),
  check_at = coalesce(cast(:now as bigint), tidings_now()), changed_at = coalesce(cast(:now as bigint), tidings_now())
where group_id = :group_id and state = 'running'
returning group_id
