-- A record type of a job.
insert into job_types (job, type, wave) select n, :type, :wave from jobs where id = :id
