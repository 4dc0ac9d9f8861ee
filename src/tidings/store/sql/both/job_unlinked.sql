-- Records whose other end never came are quarantined.
update job_records set state = 'failed', failure = 'dependency', changed_at = coalesce(cast(:now as bigint), tidings_now())
where seq in (select seq from job_records
              where job = :job and fingerprint is not null and type = :type and round = :round and state = 'waiting'
              order by seq limit :limit)
returning seq
