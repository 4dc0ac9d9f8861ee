-- Batches at which nobody works any more: their task is over, or there is none.
select b.id, b.job, b.type, b.phase, b.system, b.round, b.first, b.last, b.size, b.state, t.state as task_state, t.crashes
from job_batches b left join tasks t on t.id = b.task
where b.job = :job and b.round = :round and b.state in ('pending', 'processing', 'failed', 'retrying')
  and (t.id is null or t.state not in ('pending', 'processing'))
order by b.id limit :limit
