-- Cancel what waits: pending or failed. A task at work is only asked (ask_cancel).
update tasks set state = 'cancelled', cancel_requested = true, head = (ordering_key is null), changed_at = coalesce(cast(:now as bigint), tidings_now())
where id = :id and state = :expected and state in ('pending', 'failed')
returning id, state, attempts, queue, ordering_key, changed_at
