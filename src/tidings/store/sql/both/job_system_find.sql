-- A system as it stands.
select name, step, next_at, concurrency, most, blocked_until, reason, failures, best, month, used, version,
  coalesce(cast(:now as bigint), tidings_now()) as now
from job_systems where name = :system
