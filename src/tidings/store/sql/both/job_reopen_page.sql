-- Records of one cause that can be opened again, in the order in which they were read, from a place on.
select seq from job_records
where job = :job and fingerprint = :fingerprint and seq > :after and type = :type and round = :round and raw is not null
  and (state = :state or (cast(:state as text) is null and state in ('rejected', 'failed', 'conflict', 'waiting')))
  and (cast(:tag as text) is null or batch = :tag)
order by seq limit :limit
