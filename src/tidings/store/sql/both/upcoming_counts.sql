-- How many messages of a tenant go out between two instants, by queue and priority; each counted up to a bound.
select q.name as queue, p.priority,
  (select count(*) from (select t.tenant, t.kind from tasks t
     where t.queue = q.name and t.priority = p.priority and t.state = 'pending' and t.head
       and t.due_at >= :since and t.due_at < :until order by t.due_at limit :most) d
   where d.tenant = :tenant and d.kind = :kind) as n
from queues q cross join (
  select 0 as priority union all select 1 union all select 2 union all select 3 union all select 4
  union all select 5 union all select 6 union all select 7 union all select 8 union all select 9) p
order by q.name, p.priority
