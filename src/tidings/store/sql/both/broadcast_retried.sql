-- The retry has come so far (null: to its end); only behind where it was.
update broadcasts set retry_to = :place, check_at = :check_at, changed_at = coalesce(cast(:now as bigint), tidings_now())
where group_id = :group_id and state = 'running' and retry_to = :expected
returning group_id
