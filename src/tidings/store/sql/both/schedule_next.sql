-- The time, and when the first schedule fires.
select coalesce(cast(:now as bigint), tidings_now()) as now,
  (select min(next_at) from schedules where next_at is not null) as next_at
