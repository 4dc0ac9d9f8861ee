-- One more beat; no row back means that the others have given this node up. An id may be another node's after a failover
-- that lost our row, so the start is compared as well.
update nodes set beat = beat + 1, seen_at = coalesce(cast(:now as bigint), tidings_now()), info = :info
where id = :id and started_at = :started_at and state = 'live'
returning beat, seen_at, '' as server
