-- Claim up to :room due tasks for :node; rows that have expired come back unclaimed (claim_no -1).
-- Own file: row locks (skip locked) and lateral range scans, one per queue and priority.
with clock as materialized (
  select coalesce(:now::bigint, tidings_now()) as now
), ready as materialized (
  select r.queue, r.room from unnest(:queues::text[], :rooms::int[]) r(queue, room)
  join queues q on q.name = r.queue, clock
  where not q.paused and coalesce(q.parked_until, 0) <= clock.now
    and (q.opened_at is null or q.name = any(:probes::text[]))
), near as (
  select r.queue, p.priority, t.due_at, r.room, row_number() over (order by t.due_at) <= :fair::int as favoured
  from ready r cross join clock cross join generate_series(0, 9) p(priority) cross join lateral (
    select due_at from tasks
    where queue = r.queue and priority = p.priority and state = 'pending' and head and due_at <= clock.now
    order by due_at limit least(r.room, :room::int)) t
), ranked as (
  select queue, priority, room, row_number() over (order by favoured desc, priority, due_at) as place,
    row_number() over (partition by queue order by favoured desc, priority, due_at) as place_in_queue
  from near
), wanted as materialized (
  select queue, priority, count(*) as n from (
    select queue, priority from ranked where place_in_queue <= room order by place limit :room::int) c
  group by queue, priority order by priority
), picked as materialized (
  select t.id, t.late from wanted w cross join clock cross join lateral (
    select id, expires_at <= clock.now as late from tasks
    where queue = w.queue and priority = w.priority and state = 'pending' and head and due_at <= clock.now
    order by due_at limit w.n for update skip locked) t
), claimed as (
  update tasks t set state = 'processing', node = :node, claim_no = claim_no + 1, tries = tries + 1,
    started_at = null, changed_at = clock.now
  from clock
  where t.id = any(array(select id from picked where late is not true)) and t.state = 'pending'
  returning t.id, t.tenant, t.queue, t.kind, t.priority, t.due_at, t.tries, t.throttles, t.claim_no, t.crashes,
    t.unknown, t.order_key, t.expires_at, t.max_tries, t.changed_at
), told as (
  insert into history (task, origin, state, try, node, at)
  select id, 'pending', 'processing', tries, :node, changed_at from claimed
)
select * from claimed
union all
select t.id, t.tenant, t.queue, t.kind, t.priority, t.due_at, t.tries, t.throttles, -1, t.crashes,
  t.unknown, t.order_key, t.expires_at, t.max_tries, t.changed_at
from picked p join tasks t on t.id = p.id where p.late
