-- What waits for its own type is opened again only if more was written since.
update job_types set passed = :written where job = :job and type = :type and passed = :seen returning type
