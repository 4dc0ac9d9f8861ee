-- Who made a job; written with it.
insert into job_audit (job, at, who, what, detail) select n, created_at, :who, 'created', name from jobs where id = :id
