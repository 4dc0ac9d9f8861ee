-- The next cause of a job, in the order of their names.
select min(fingerprint) as cause from job_records where job = :job and fingerprint is not null and fingerprint > :after
