-- The source could not be read: again later.
update job_types set attempts = attempts + :spent, due_at = :due_at, problem = :problem, reader_until = 0
where job = :job and type = :type and reader = :reader
