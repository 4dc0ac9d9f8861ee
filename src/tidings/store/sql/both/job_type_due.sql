-- Types whose source has more, that nobody reads at the moment; those longest not read first.
select t.job, t.type, t.due_at, j.round
from jobs j cross join job_types t
where j.state in ('planning', 'running', 'paused') and j.state <> 'paused' and t.job = j.n and not t.is_read
  and t.due_at <= coalesce(cast(:now as bigint), tidings_now())
  and (t.reader_until <= coalesce(cast(:now as bigint), tidings_now()) or t.reader = :reader)
order by t.reader_until, t.job limit :limit
