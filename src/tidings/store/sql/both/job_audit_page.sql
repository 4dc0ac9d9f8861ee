-- Who did what to a job, in order.
select at, who, what, detail from job_audit where job = :job order by n limit :limit
