-- Whoever resumes a job wants its source tried at once.
update job_types set due_at = 0, attempts = 0, problem = null where job = :job
