-- Records of a type that were mended, with what the source had said of them.
select seq, source_id, original from job_records
where job = :job and type = :type and seq > :after and original is not null and round = :round order by seq limit :limit
