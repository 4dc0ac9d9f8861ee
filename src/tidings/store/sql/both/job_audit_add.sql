-- Who did what to a job; written with what was done.
insert into job_audit (job, at, who, what, detail) values (:job, coalesce(cast(:now as bigint), tidings_now()), :who,
  :what, :detail)
