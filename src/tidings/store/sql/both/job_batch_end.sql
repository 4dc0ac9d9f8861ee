-- End an attempt at a batch. A batch that is released before any failure is pending again, afterwards it is failed.
update job_batches set reason = :reason, spent = spent + :spent, failures = failures + case when :state = 'failed' then 1 else 0 end,
  state = case when :state = 'pending' and failures > 0 then 'failed' else :state end,
  changed_at = coalesce(cast(:now as bigint), tidings_now()),
  task = case when cast(:keeps as boolean) then task end
where id = :batch and exists (select 1 from tasks t where t.id = :task and t.state = 'processing' and t.claim_no = :claim_no)
returning id, state, spent
