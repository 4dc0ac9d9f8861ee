-- What was written without a link was opened again.
update job_types set linked = true where job = :job and type = :type
