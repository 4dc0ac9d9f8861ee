-- A new batch.
insert into job_batches (id, job, type, round, phase, system, first, last, size, task, made_at, changed_at)
values (:id, :job, :type, :round, :phase, :system, :first, :last, :size,
  (select max(task) from job_batch_tasks where batch = :id), coalesce(cast(:now as bigint), tidings_now()),
    coalesce(cast(:now as bigint), tidings_now()))
