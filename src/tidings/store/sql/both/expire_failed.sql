-- Expire a dead letter that has been one since an instant.
update tasks set state = 'expired', head = (ordering_key is null), changed_at = coalesce(cast(:now as bigint), tidings_now())
where id = :id and state = 'failed' and changed_at <= :before
returning id, state, attempts, queue, ordering_key, changed_at
