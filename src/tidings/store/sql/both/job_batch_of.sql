-- The batch that a task runs, with its job.
select b.id, b.job, b.type, b.round, b.phase, b.system, b.first, b.last, b.size, b.state, b.failures,
  j.version, j.id as job_id
from job_batch_tasks t join job_batches b on b.id = t.batch join jobs j on j.n = b.job where t.task = :task
