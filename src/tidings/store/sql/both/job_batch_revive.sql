-- A new task for a batch that has none.
update job_batches set task = (select max(task) from job_batch_tasks where batch = :id),
  state = case when failures > 0 then 'failed' else 'pending' end,
  changed_at = coalesce(cast(:now as bigint), tidings_now())
where id = :id and state = :expected and (task is null or exists (
  select 1 from tasks t where t.id = job_batches.task and t.state not in ('pending', 'processing'))
  or not exists (select 1 from tasks t where t.id = job_batches.task))
returning id
