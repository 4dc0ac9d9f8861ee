-- The newest jobs with what their latest round has moved, and for how long.
select j.tenant, j.state, j.started_at, j.ended_at, coalesce(cast(:now as bigint), tidings_now()) as now,
  (select coalesce(sum(b.written), 0) from job_batches b where b.job = j.n and b.round = j.round) as written,
  (select coalesce(sum(b.unchanged), 0) from job_batches b where b.job = j.n and b.round = j.round) as unchanged
from jobs j order by j.n desc limit :limit
