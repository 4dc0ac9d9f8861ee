-- The types of a job, how far each is, and what is open in it.
select t.type, t.wave, t.cursor, t.expected, t.extracted, t.seen_again, t.is_read, t.due_at, t.problem, t.note, t.cut, t.passed,
  t.linked, t.pace, t.counts,
  (select max(r.seq) from job_records r where r.job = t.job and r.type = t.type and r.batch is null)
    as last_seq,
  (select count(*) from job_batches b where b.job = t.job and b.round = j.round and b.type = t.type
     and b.state in ('pending', 'processing', 'failed', 'retrying')) as open_batches,
  (select coalesce(sum(b.written), 0) from job_batches b where b.job = t.job and b.round = j.round and b.type = t.type)
    as written,
  (select coalesce(sum(b.unchanged), 0) from job_batches b where b.job = t.job and b.round = j.round and b.type = t.type)
    as unchanged,
  (select coalesce(sum(b.planned), 0) from job_batches b where b.job = t.job and b.round = j.round and b.type = t.type)
    as planned
from job_types t join jobs j on j.n = t.job where t.job = :job order by t.wave, t.type
