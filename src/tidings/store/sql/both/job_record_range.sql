-- Open records of a batch, from a place on.
select seq, source_id, state, key, target_id, hash, action, attempts, due_at, claimed_at, before, raw, mapped, links, failure, reason
from job_records
where job = :job and type = :type and seq > :after and seq <= :last and round = :round and batch is null
  and state in ('extracted', 'ready', 'claimed', 'unknown') and (state = 'extracted' or not cast(:planning as boolean))
    and due_at <= coalesce(cast(:now as bigint), tidings_now())
order by seq limit :limit
