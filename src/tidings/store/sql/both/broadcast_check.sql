-- Whoever changes this row looks at the broadcast now; if it dies, the next one does, a lease later.
update broadcasts set check_at = coalesce(cast(:now as bigint), tidings_now()) + :lease
where group_id = :group_id and check_at = :seen
returning check_at, coalesce(cast(:now as bigint), tidings_now()) as now
