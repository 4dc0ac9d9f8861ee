-- Who made a job; written with it.
insert into job_audit (job, at, actor, action, detail) select n, created_at, :actor, 'created', name from jobs where id = :id
