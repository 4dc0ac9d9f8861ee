-- How many records of a type an earlier round had and this one has not.
select (select count(*) from job_records r where r.job = :job and r.type = :type and r.batch is null and r.round < :round)
  + (select count(*) from job_batches b cross join job_records r
     where b.job = :job and r.batch = b.id and r.type = :type and r.round < :round) as n
