-- Batches of a tenant's jobs that have a task under way: whose, and at which priority.
select b.job, t.priority from jobs j cross join job_batches b cross join tasks t
where j.state in ('planning', 'running', 'paused') and j.state <> 'paused' and j.tenant = :tenant
  and b.job = j.n and b.round = j.round and b.state in ('pending', 'processing', 'failed', 'retrying')
  and t.id = b.task and t.state in ('pending', 'processing')
