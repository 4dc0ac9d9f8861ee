-- The batch that a task runs, with its job.
select b.id, b.job, b.type, b.round, b.phase, b.system, b.first, b.last, b.size, b.state, b.attempts,
  j.version, j.state as job_state, j.round as job_round
from job_batch_tasks t join job_batches b on b.id = t.batch join jobs j on j.n = b.job where t.task = :task
