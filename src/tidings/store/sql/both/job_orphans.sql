-- Open records of a type that no batch has: they get one.
update job_records set batch = :batch, changed_at = coalesce(cast(:now as bigint), tidings_now())
where seq in (select r.seq from job_records r where r.job = :job and r.type = :type and r.batch is null and r.round = :round
                and r.state in ('extracted', 'ready', 'claimed', 'unknown')
              union select r.seq from job_batches b cross join job_records r
              where b.job = :job and r.batch = b.id and r.type = :type and r.round = :round
                and r.state in ('extracted', 'ready', 'claimed', 'unknown') limit :limit)
returning seq
