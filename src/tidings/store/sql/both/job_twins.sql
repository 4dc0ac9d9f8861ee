-- How many records of the same content are in doubt.
select count(*) as n from job_records
where job = :job and fingerprint is not null and type = :type and state = 'unknown' and hash = :hash
