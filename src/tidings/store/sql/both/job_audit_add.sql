-- Who did what to a job; written with what was done.
insert into job_audit (job, at, actor, action, detail) values (:job, coalesce(cast(:now as bigint), tidings_now()), :actor,
  :action, :detail)
