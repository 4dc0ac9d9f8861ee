-- What a batch does is written only while its task's claim stands; counts what ended in it.
update job_batches set state = 'processing', task = :task, attempts = attempts + :attempts, written = written + :written,
  unchanged = unchanged + :unchanged, changed_at = coalesce(cast(:now as bigint), tidings_now())
where id = :batch and exists (select 1 from tasks t where t.id = :task and t.state = 'processing' and t.claim_no = :claim_no)
returning id
