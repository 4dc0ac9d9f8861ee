-- What the pump must look at first, and the time.
select lot, look_at, coalesce(cast(:now as bigint), tidings_now()) as now
from broadcasts where look_at is not null order by look_at limit :limit
