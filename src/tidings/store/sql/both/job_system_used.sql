-- Calls of this month.
update job_systems set used = case when month = :month then used else 0 end + :calls, month = :month where name = :name
