-- Read the source of a resumed job immediately.
update job_types set due_at = 0, attempts = 0, problem = null where job = :job
