-- This record of the target is that of the source, unless it is another's, or may be one's that is being written.
insert into crosswalk (pair, type, source_id, target_id, hash, job, changed_at)
select :pair, :type, :source_id, :target_id, :hash, :job, coalesce(cast(:now as bigint), tidings_now())
where not exists (select 1 from crosswalk x where x.pair = :pair and x.type = :type and x.target_id = :target_id
                    and x.source_id <> :source_id)
  and not exists (select 1 from job_records r where r.job = :job and r.type = :type and r.state = 'claimed' and r.hash = :hash
                    and r.source_id <> :source_id)
on conflict (source_id, type, pair) do update set target_id = excluded.target_id, hash = excluded.hash, job = excluded.job,
  changed_at = excluded.changed_at
returning source_id
