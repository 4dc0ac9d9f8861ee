-- Whether a batch may go on: its claim, its job, its system, and how many share that.
select t.id is not null as holds, j.state as job_state, j.version, j.round, j.lookup, s.concurrency, s.most, s.step,
  s.blocked_until, s.reason, s.failures,
  s.best, s.month, s.used, s.version as system_version,
  t.id is not null and exists (select 1 from tasks w where w.queue = t.queue and w.priority < t.priority and w.state = 'pending'
    and w.head and w.due_at <= coalesce(cast(:now as bigint), tidings_now())) as outranked,
  (select count(*) from job_batches o where o.system = b.system and o.state in ('processing', 'retrying')) as sharing,
  coalesce(cast(:now as bigint), tidings_now()) as now
from job_batches b join jobs j on j.n = b.job join job_systems s on s.name = b.system
  left join tasks t on t.id = :task and t.state = 'processing' and t.claim_no = :claim_no
where b.id = :batch
