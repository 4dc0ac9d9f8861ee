-- All recipients are in: from here on nothing is added, and it may start.
update broadcasts set state = :state, check_at = :check_at, started_at = :started_at,
  frozen_at = coalesce(cast(:now as bigint), tidings_now()), changed_at = coalesce(cast(:now as bigint), tidings_now())
where group_id = :group_id and state = 'loading' and lines = :lines and total > 0
returning group_id
