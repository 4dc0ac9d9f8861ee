-- What was noticed about a type.
update job_types set note = :note where job = :job and type = :type
