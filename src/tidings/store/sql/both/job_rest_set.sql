-- What is still open of the records opened again in a batch, and when the first of it is due.
select count(*) as n, min(due_at) as due_at from job_records
where batch = :batch and state in ('extracted', 'ready', 'claimed', 'unknown')
  and (state = 'extracted' or not cast(:planning as boolean))
