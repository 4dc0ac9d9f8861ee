-- Manual retry: a dead letter starts again with all its attempts, behind its ordering key.
update tasks set state = 'pending', attempts = 0, throttles = 0, crashes = 0, category = null, cancel_requested = false,
  head = (ordering_key is null), due_at = :due_at, expires_at = :expires_at,
  changed_at = coalesce(cast(:now as bigint), tidings_now())
where id = :id and state = 'failed'
returning id, queue, ordering_key, changed_at
