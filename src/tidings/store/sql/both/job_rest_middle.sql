-- The first, the middle and the last open record of a batch.
select count(*) as n, min(seq) as first, max(seq) as last from job_records
where job = :job and type = :type and round = :round and seq >= :first and seq <= :last
  and state in ('extracted', 'ready', 'claimed', 'unknown') and coalesce(batch, '') = coalesce(cast(:seen as text), '')
