-- Records that were set aside, in the order in which they were read.
select seq, type, source_id, state, failure, field, fingerprint, reason, raw from job_records
where job = :job and fingerprint is not null and seq > :after and round = :round
  and state in ('rejected', 'failed', 'conflict', 'waiting')
  and (cast(:fingerprint as text) is null or fingerprint = :fingerprint) and (cast(:type as text) is null or type = :type)
order by seq limit :limit
