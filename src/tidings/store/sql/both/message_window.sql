-- The newest messages before a place, looking at a bounded number of tasks only.
-- Walks tasks by id and stops when the page is full: `cross join` keeps SQLite from starting with the messages.
select m.id, m.tenant, m.channel, m.recipient,
  coalesce(nullif(m.content, ''), (select b.content from broadcasts b where b.group_id = m.group_id)) as content,
  m.accepted_at, m.scheduled_at, t.id as task, t.state, t.priority,
  t.due_at, t.attempts, t.max_attempts, t.throttles, t.claim_no, t.changed_at, t.expires_at, t.started_at, t.ordering_key, t.head,
  t.unknown, t.cancel_requested, t.category, t.node
from tasks t cross join messages m
where t.id < :before and m.task = t.id and t.tenant = :tenant
  and t.id >= (select min(w.id) from (select id from tasks where id < :before order by id desc limit :window) w)
  and (cast(:channel as text) is null or m.channel = :channel)
  and (cast(:state as text) is null or t.state = :state)
  and (cast(:unknown as boolean) is null or t.unknown = :unknown)
order by t.id desc limit :limit
