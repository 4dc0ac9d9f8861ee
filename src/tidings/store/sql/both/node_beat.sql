-- One more beat; no row back means that the others have given this node up.
update nodes set beat = beat + 1, seen_at = coalesce(cast(:now as bigint), tidings_now()), info = :info
where id = :id and state = 'live'
returning beat, seen_at
