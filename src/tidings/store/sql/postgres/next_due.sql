-- When something on these queues can next be claimed; null when nothing waits. Also tells the time.
-- Own file: lateral probes.
select coalesce(:now::bigint, tidings_now()) as now, min(greatest(t.due_at, coalesce(q.parked_until, 0),
  coalesce(l.next_at - 250000, 0))) as next_at
from unnest(:queues::text[]) r(queue) join queues q on q.name = r.queue and not q.paused
  and (q.opened_at is null or q.parked_until > coalesce(:now::bigint, tidings_now()))
left join limits l on l.queue = r.queue
cross join generate_series(0, 9) p(priority) cross join lateral (
  select due_at from tasks where queue = r.queue and priority = p.priority and state = 'pending' and head
  order by due_at limit 1) t
