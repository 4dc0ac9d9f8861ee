-- Claim up to :room due tasks for :node; rows that have expired come back unclaimed (claim_no -1).
-- Own file: row locks (skip locked) and lateral range scans, one per queue and priority that has something due.
with recursive clock as materialized (
  select coalesce(:now::bigint, tidings_now()) as now
), each as (  -- a loose index scan: the earliest of each queue and priority that is there
  select r.queue, t.priority, t.due_at, least(r.room, :room::int) as room
  from clock cross join unnest(:queues::text[], :rooms::int[]) r(queue, room) join queues q on q.name = r.queue
  cross join lateral (
    select priority, due_at from tasks where queue = r.queue and state = 'pending' and head
    order by priority, due_at limit 1) t
  where not q.paused and coalesce(q.blocked_until, 0) <= clock.now and coalesce(q.session_state, 'connected') = 'connected'
    and (q.opened_at is null or q.name = any(:probes::text[]))
  union all
  select e.queue, t.priority, t.due_at, e.room
  from each e cross join lateral (
    select priority, due_at from tasks where queue = e.queue and state = 'pending' and head and priority > e.priority
    order by priority, due_at limit 1) t
), heads as materialized (
  select queue, priority, room from each cross join clock where due_at <= clock.now
), near as (
  select h.queue, h.priority, t.due_at, h.room, row_number() over (order by t.due_at) <= :fair::int as favoured
  from heads h cross join clock cross join lateral (
    select due_at from tasks
    where queue = h.queue and priority = h.priority and state = 'pending' and head and due_at <= clock.now
    order by due_at limit h.room) t
  where (select count(*) from heads) > 1  -- with a single head there is nothing to weigh
), ranked as (
  select queue, priority, room, row_number() over (order by favoured desc, priority, due_at) as place,
    row_number() over (partition by queue order by favoured desc, priority, due_at) as place_in_queue
  from near
), wanted as materialized (
  select queue, priority, count(*) as n from (
    select queue, priority from ranked where place_in_queue <= room order by place limit :room::int) c
  group by queue, priority
  union all
  select queue, priority, room from heads where (select count(*) from heads) = 1
), picked as materialized (
  select t.place, t.id, t.late from wanted w cross join clock cross join lateral (
    select ctid as place, id, expires_at <= clock.now as late from tasks
    where queue = w.queue and priority = w.priority and state = 'pending' and head and due_at <= clock.now
    order by due_at limit w.n for update skip locked) t
), claimed as (
  -- By place: the rows are locked, so they stay where they are. The state is named in a form that no index answers.
  update tasks t set state = 'processing', node = :node, claim_no = claim_no + 1, attempts = attempts + 1,
    started_at = null, changed_at = clock.now
  from clock
  where t.ctid = any(array(select place from picked where late is not true)) and t.state is not distinct from 'pending'
  returning t.id, t.tenant, t.queue, t.kind, t.priority, t.due_at, t.attempts, t.throttles, t.claim_no, t.crashes,
    t.unknown, t.ordering_key, t.expires_at, t.max_attempts, t.changed_at
), told as (
  insert into history (task, origin, state, attempt, node, at)
  select id, 'pending', 'processing', attempts, :node, changed_at from claimed
)
select id, tenant, queue, kind, priority, due_at, attempts, throttles, claim_no, crashes, unknown, ordering_key, expires_at,
  max_attempts, 0 as start_at
from claimed
union all
select t.id, t.tenant, t.queue, t.kind, t.priority, t.due_at, t.attempts, t.throttles, -1, t.crashes,
  t.unknown, t.ordering_key, t.expires_at, t.max_attempts, 0
from picked p cross join lateral (select * from tasks where id = p.id limit 1) t where p.late
