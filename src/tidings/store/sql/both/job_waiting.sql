-- How many records of a type wait for another one.
select count(*) as n from job_records
where job = :job and fingerprint is not null and type = :type and round = :round and state = 'waiting'
