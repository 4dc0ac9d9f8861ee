-- Expire what was not claimed before its time ran out.
update tasks set state = 'expired', head = (order_key is null), changed_at = coalesce(cast(:now as bigint), tidings_now())
where id = :id and state = 'pending' and expires_at <= coalesce(cast(:now as bigint), tidings_now())
returning id, tries, queue, order_key, changed_at
