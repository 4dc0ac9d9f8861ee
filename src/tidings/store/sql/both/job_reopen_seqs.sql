-- Which records would be opened again, up to a number of them.
select count(*) as n, max(x.seq) as last from (select seq from job_records
  where job = :job and fingerprint is not null and type = :type and round = :round and seq > :after
    and (state = :state or (cast(:state as text) is null and state in ('rejected', 'failed', 'conflict', 'waiting')))
    and (cast(:fingerprint as text) is null or fingerprint = :fingerprint) and raw is not null
    and (cast(:tag as text) is null or batch = :tag)
  order by seq limit :limit) x
