-- Every attempt at a record.
select at, what, code, reason from job_log where record = :record order by n limit :limit
