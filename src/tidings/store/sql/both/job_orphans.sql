-- Open records of a type that no batch has: they get one.
update job_records set batch = :batch, changed_at = coalesce(cast(:now as bigint), tidings_now())
where seq in (select seq from job_records where job = :job and type = :type and round = :round
                and state in ('extracted', 'ready', 'claimed', 'unknown') order by seq limit :limit)
returning seq
