-- What waits and was due when the rewind was found, so it may have been sent on the lost copy. Paused channels sent nothing.
-- `rewind_settle` moves every row out of this range. Own file: lateral range scans, one per queue and priority.
select t.id, t.tenant, t.queue, t.kind, t.priority, t.due_at, t.attempts, t.throttles, t.claim_no, t.crashes, t.unknown,
  t.ordering_key, t.expires_at, t.max_attempts, q.deadline, q.on_unknown
from queues q cross join lateral (
  select h.* from generate_series(0, 9) p(priority) cross join lateral (
    select * from tasks where queue = q.name and priority = p.priority and state = 'pending' and head
      and due_at <= :until::bigint and (expires_at is null or expires_at > :until + 1)
    order by due_at limit :limit::int) h
  union all
  select * from (
    select * from tasks where queue = q.name and ordering_key is not null and state = 'pending' and not head
      and due_at <= :until and (expires_at is null or expires_at > :until + 1)
    order by ordering_key, first_due, id limit :limit) w
) t
where not q.paused limit :limit
