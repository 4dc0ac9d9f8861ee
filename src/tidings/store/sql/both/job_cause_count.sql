-- How many records of a job have one cause.
select count(*) as n from (select 1 from job_records where job = :job and fingerprint = :fingerprint limit :limit) x
