-- Cancel what waits: pending or failed. A task at work is only asked (ask_cancel).
update tasks set state = 'cancelled', cancel_asked = true, head = (order_key is null), changed_at = coalesce(cast(:now as bigint), tidings_now())
where id = :id and state = :expected and state in ('pending', 'failed')
returning id, state, tries, queue, order_key, changed_at
