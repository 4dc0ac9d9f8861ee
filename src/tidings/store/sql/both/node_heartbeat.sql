-- One more beat; no row back means that the others have given this node up. An id may be another node's after a failover
-- that lost our row, so the start is compared as well. A clock that was set back does not hide the later time that the node
-- has seen: that is dealt with first.
update nodes set heartbeat = heartbeat + 1, info = :info,
  seen_at = case when seen_at - 1000000 > coalesce(cast(:now as bigint), tidings_now()) then seen_at
    else coalesce(cast(:now as bigint), tidings_now()) end
where id = :id and started_at = :started_at and state = 'live'
returning heartbeat, coalesce(cast(:now as bigint), tidings_now()) as seen_at, '' as server
