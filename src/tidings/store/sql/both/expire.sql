-- Expire what was not claimed before its time ran out.
update tasks set state = 'expired', head = (ordering_key is null), changed_at = coalesce(cast(:now as bigint), tidings_now())
where id = :id and state = 'pending' and expires_at <= coalesce(cast(:now as bigint), tidings_now())
returning id, attempts, queue, ordering_key, changed_at
