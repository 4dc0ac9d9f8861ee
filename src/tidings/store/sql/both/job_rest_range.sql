-- What is still open in a batch, and when the first of it is due.
select count(*) as n, min(due_at) as due_at from job_records
where job = :job and type = :type and seq >= :first and seq <= :last and round = :round and batch is null
  and state in ('extracted', 'ready', 'claimed', 'unknown') and (state = 'extracted' or not cast(:planning as boolean))
