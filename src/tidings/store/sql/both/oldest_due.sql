-- When the oldest task of each open queue that waits was due; one look at the index for each priority.
select q.name as queue, min((select min(t.due_at) from tasks t where t.queue = q.name and t.priority = p.priority
    and t.state = 'pending' and t.head)) as due_at
from queues q cross join (
  select 0 as priority union all select 1 union all select 2 union all select 3 union all select 4
  union all select 5 union all select 6 union all select 7 union all select 8 union all select 9) p
where not q.paused
group by q.name order by q.name
