-- Jobs that should move and have not since an instant: no batch has changed, and nobody reads for them; parked ones wait by rule.
select j.id, j.tenant, j.name, j.changed_at from jobs j
where j.state in ('planning', 'running') and j.changed_at < :before and coalesce(j.blocked_until, 0) <= :until
  and not exists (select 1 from job_batches b where b.job = j.n and b.round = j.round and b.changed_at >= :before)
  and not exists (select 1 from job_types t where t.job = j.n and t.reader_until > :until)
order by j.n limit :limit
