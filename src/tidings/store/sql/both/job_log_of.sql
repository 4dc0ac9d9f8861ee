-- The last attempts at a record, in order.
select at, what, code, reason from (
  select n, at, what, code, reason from job_log where record = :record order by n desc limit :limit) x order by n
