-- The open records of a batch that nobody can work at move to another one, the first or the second half of them.
update job_records set batch = :batch, changed_at = coalesce(cast(:now as bigint), tidings_now())
where seq in (select seq from job_records
              where job = :job and type = :type and round = :round and seq > :after and seq <= :last
                and state in ('extracted', 'ready', 'claimed', 'unknown')
                and coalesce(batch, '') = coalesce(cast(:seen as text), ''))
returning seq
