-- Take the check of a broadcast: the node that updates the row runs it; another one after a lease.
update broadcasts set check_at = coalesce(cast(:now as bigint), tidings_now()) + :lease
where group_id = :group_id and check_at = :seen
returning check_at, coalesce(cast(:now as bigint), tidings_now()) as now
