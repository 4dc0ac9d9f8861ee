-- A turn of a batch is over: all done, or given back with the reason.
update job_batches set state = :state, reason = :reason, spent = spent + :spent,
  changed_at = coalesce(cast(:now as bigint), tidings_now()),
  task = case when cast(:keeps as boolean) then task end
where id = :batch and exists (select 1 from tasks t where t.id = :task and t.state = 'processing' and t.claim_no = :claim_no)
returning id
