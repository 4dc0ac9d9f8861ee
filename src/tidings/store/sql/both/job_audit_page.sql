-- Who did what to a job last, in order.
select at, actor, action, detail from (
  select n, at, actor, action, detail from job_audit where job = :job order by n desc limit :limit) x order by n
