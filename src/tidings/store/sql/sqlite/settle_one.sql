-- Move one claimed task on. Own file: run once per row.
update tasks set
  state = case when :state = 'pending' and cancel_requested then 'cancelled' else :state end,
  attempts = :attempts, throttles = :throttles, crashes = :crashes, due_at = coalesce(:due_at, due_at),
  category = :category, unknown = (unknown or :unknown), node = null, changed_at = :now
where id = :id and state = 'processing' and node = :node and claim_no = :claim_no
returning id, state, attempts
