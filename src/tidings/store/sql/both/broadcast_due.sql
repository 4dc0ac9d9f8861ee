-- What the pump must look at first, and the time.
select group_id, check_at, coalesce(cast(:now as bigint), tidings_now()) as now
from broadcasts where check_at is not null order by check_at limit :limit
