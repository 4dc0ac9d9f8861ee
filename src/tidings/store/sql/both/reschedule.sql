-- Another time for something that has not begun.
update tasks set due_at = :due_at, first_due = case when ordering_key is null then null else cast(:due_at as bigint) end,
  head = (ordering_key is null), expires_at = :expires_at
where id = :id and state = 'pending'
returning id, queue, ordering_key, attempts
