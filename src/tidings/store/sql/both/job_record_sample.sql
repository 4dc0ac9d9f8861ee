-- The first records of a type as the source returned them.
select source_id, raw from job_records
where job = :job and round = :round and type = :type and raw is not null order by seq limit :limit
