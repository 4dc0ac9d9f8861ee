-- How many tasks could start now, by queue; each priority counted up to a bound, never touching a future row.
select q.name as queue, sum((select count(*) from (
    select t.id from tasks t where t.queue = q.name and t.priority = p.priority and t.state = 'pending' and t.head
      and t.due_at <= (select coalesce(cast(:now as bigint), tidings_now())) limit :most) d)) as due
from queues q cross join (
  select 0 as priority union all select 1 union all select 2 union all select 3 union all select 4
  union all select 5 union all select 6 union all select 7 union all select 8 union all select 9) p
group by q.name order by q.name
