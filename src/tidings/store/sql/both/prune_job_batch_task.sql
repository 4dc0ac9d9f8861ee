-- Forget which batch a task has run.
delete from job_batch_tasks where task = :id
