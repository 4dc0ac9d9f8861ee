-- Records of one cause that were quarantined, in the order in which they were read, from a place on.
select seq, type, source_id, state, failure, field, fingerprint, reason, raw from job_records
where job = :job and fingerprint = :fingerprint and seq > :after and round = :round
  and state in ('rejected', 'failed', 'conflict', 'waiting') and (cast(:type as text) is null or type = :type)
order by seq limit :limit
