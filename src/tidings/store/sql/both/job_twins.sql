-- Number of records with the same content and an unknown outcome.
select count(*) as n from job_records
where job = :job and fingerprint is not null and type = :type and state = 'unknown' and hash = :hash
