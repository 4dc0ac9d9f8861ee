-- Sources of a tenant whose results are written back, with what waits and what was rejected.
select w.source, w.failures, w.failing_since, w.problem, w.next_at, w.last_at, w.written,
  (select count(*) from import_rows r where r.source = w.source) as imported,
  (select count(*) from import_rows r where r.source = w.source and r.check_at <= coalesce(cast(:now as bigint), tidings_now())) as waiting,
  (select count(*) from import_rows r where r.source = w.source and r.problem is not null) as rejected
from write_backs w where w.tenant = :tenant order by w.source limit :limit
