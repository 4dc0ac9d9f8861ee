-- An attempt at a batch writes only while its task's claim is valid; counts the records that ended in it. An attempt that
-- finds the batch in progress follows a crash, which counts as a failure.
update job_batches set task = :task, planned = planned + :planned, written = written + :written, unchanged = unchanged + :unchanged,
  failures = failures + case when cast(:begins as boolean) and state in ('processing', 'retrying') then 1 else 0 end,
  state = case when failures > 0 or (cast(:begins as boolean) and state in ('processing', 'retrying')) then 'retrying'
    else 'processing' end,
  changed_at = coalesce(cast(:now as bigint), tidings_now())
where id = :batch and exists (select 1 from tasks t where t.id = :task and t.state = 'processing' and t.claim_no = :claim_no)
returning id, failures
