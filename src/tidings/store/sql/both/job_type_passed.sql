-- What waits is opened again only if more of what it may wait for has come since.
update job_types set passed = :came where job = :job and type = :type and passed = :seen returning type
