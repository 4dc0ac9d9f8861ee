-- The newest jobs with what their latest round has moved, and for how long.
select j.tenant, j.state, j.started_at, j.ended_at, j.done_before, coalesce(cast(:now as bigint), tidings_now()) as now,
  case when j.state in ('planning', 'running') then (select count(*) from job_records r where r.job = j.n
    and r.fingerprint is not null and r.round = j.round) else 0 end as quarantined,
  (select coalesce(sum(b.written), 0) from job_batches b where b.job = j.n and b.round = j.round) as written,
  (select coalesce(sum(b.unchanged), 0) from job_batches b where b.job = j.n and b.round = j.round) as unchanged
from jobs j order by j.n desc limit :limit
