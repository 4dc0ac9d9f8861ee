-- Systems of migrations: what they bear, whether they are left alone, how many calls of the month are used.
select name, concurrency, blocked_until, month, used, coalesce(cast(:now as bigint), tidings_now()) as now
from job_systems order by name limit :limit
