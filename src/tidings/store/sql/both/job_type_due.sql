-- Types whose source has more, that nobody reads at the moment.
select t.job, t.type, t.due_at, j.round
from jobs j join job_types t on t.job = j.n
where j.state in ('planning', 'running') and not t.is_read
  and t.due_at <= coalesce(cast(:now as bigint), tidings_now())
  and (t.reader_until <= coalesce(cast(:now as bigint), tidings_now()) or t.reader = :reader)
order by t.due_at, t.job limit :limit
