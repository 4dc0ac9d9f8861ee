-- What a plan says, by type.
select type, action, count(*) as n from job_records where job = :job and round = :round group by type, action
