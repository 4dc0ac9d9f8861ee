-- Who did what to a job last, in order.
select at, who, what, detail from (
  select n, at, who, what, detail from job_audit where job = :job order by n desc limit :limit) x order by n
