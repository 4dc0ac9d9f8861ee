-- What is still open in a batch, when the first of it is due, and how many records have failed.
select count(*) filter (where state <> 'failed') as n, min(due_at) filter (where state <> 'failed') as due_at,
  count(*) filter (where state = 'failed') as failed
from job_records
where job = :job and type = :type and seq >= :first and seq <= :last and round = :round and batch is null
  and (state in ('extracted', 'failed') or (state in ('ready', 'claimed', 'unknown') and not cast(:planning as boolean)))
