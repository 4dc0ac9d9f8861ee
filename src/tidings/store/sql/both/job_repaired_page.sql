-- Repaired records of a type, with the source's original data.
select seq, source_id, original from job_records
where job = :job and type = :type and seq > :after and original is not null and round = :round order by seq limit :limit
