-- What was quarantined, by cause, the most frequent first.
select x.fingerprint, x.state, x.type, x.n, r.source_id, r.failure, r.field, r.reason
from (select fingerprint, state, type, count(*) as n, min(seq) as seq from job_records
      where job = :job and fingerprint is not null and round = :round group by fingerprint, state, type) x
  join job_records r on r.seq = x.seq
order by x.n desc, x.fingerprint limit :limit
