-- Schedules that are due, earliest first: a page that is bounded by their number and by the size of what they make.
-- The time is a subquery: PostgreSQL asks a volatile function for each row.
select id, tenant, name, rule, timezone, creates, body, catch_up, catch_up_window, overlap, tags, held_at, start_at, end_at, most, fired, next_at, last_at, last_created,
  problem, version, changed_at
from (
  select d.*, sum(length(d.body)) over (order by d.next_at, d.id) - length(d.body) as before
  from (
    select * from schedules
    where next_at is not null and next_at <= (select coalesce(cast(:now as bigint), tidings_now()))
    order by next_at limit :limit
  ) d
) s
where s.before < :size
order by s.next_at, s.id
