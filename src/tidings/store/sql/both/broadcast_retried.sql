-- The retry has come so far (null: to its end); only behind where it was.
update broadcasts set retry_to = :place, look_at = :look_at, changed_at = coalesce(cast(:now as bigint), tidings_now())
where lot = :lot and state = 'pending' and retry_to = :expected
returning lot
