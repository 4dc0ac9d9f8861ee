-- How many records of a type an earlier round had and this one has not.
select count(*) as n from job_records where job = :job and type = :type and round < :round
