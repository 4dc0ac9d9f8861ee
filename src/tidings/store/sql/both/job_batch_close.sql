-- The task of a batch has failed: end the batch, or let it go on with `size` records and a new task.
update job_batches set state = :state, reason = :reason, failures = failures + case when :state = 'failed' then 1 else 0 end, size = :size, task = null,
  changed_at = coalesce(cast(:now as bigint), tidings_now())
where id = :id and state = :expected
returning id
