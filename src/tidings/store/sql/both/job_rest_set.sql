-- What is still open of the records reopened in a batch, when the first of it is due, and how many records have failed.
select count(*) filter (where state <> 'failed') as n, min(due_at) filter (where state <> 'failed') as due_at,
  count(*) filter (where state = 'failed') as failed
from job_records
where batch = :batch
  and (state in ('extracted', 'failed') or (state in ('ready', 'claimed', 'unknown') and not cast(:planning as boolean)))
