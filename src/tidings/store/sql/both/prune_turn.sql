-- Forget which batch a task has run.
delete from job_turns where task = :id
