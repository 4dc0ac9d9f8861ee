-- How many tasks should have started before an instant, by queue that is not paused; each priority counted up to a bound.
select q.name as queue, sum((select count(*) from (
    select t.id from tasks t where t.queue = q.name and t.priority = p.priority and t.state = 'pending' and t.head
      and t.due_at <= :before limit :most) d)) as overdue
from queues q cross join (
  select 0 as priority union all select 1 union all select 2 union all select 3 union all select 4
  union all select 5 union all select 6 union all select 7 union all select 8 union all select 9) p
where not q.paused
group by q.name order by q.name
