-- When something on these queues can next be claimed; null when nothing waits. Also tells the time.
-- Own file: a loose index scan, one probe for each queue and each priority that is there.
with recursive clock as materialized (
  select coalesce(:now::bigint, tidings_now()) as now
), heads as (
  select q.name as queue, t.priority, t.due_at, greatest(q.blocked_until, l.next_at - 250000) as not_before
  from clock cross join queues q left join rate_limits l on l.queue = q.name cross join lateral (
    select priority, due_at from tasks where queue = q.name and state = 'pending' and head
    order by priority, due_at limit 1) t
  where q.name = any(:queues::text[]) and not q.paused and (q.opened_at is null or q.blocked_until > clock.now)
    and coalesce(q.session_state, 'connected') = 'connected'
  union all
  select h.queue, t.priority, t.due_at, h.not_before
  from heads h cross join lateral (
    select priority, due_at from tasks where queue = h.queue and state = 'pending' and head and priority > h.priority
    order by priority, due_at limit 1) t
)
select clock.now, (select min(greatest(due_at, not_before)) from heads) as next_at from clock
