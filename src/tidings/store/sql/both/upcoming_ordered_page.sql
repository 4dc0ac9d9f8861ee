-- The first of the messages that stand behind another of their order key, between two instants; likewise bounded.
select m.id, m.tenant, m.channel, m.recipient,
  coalesce(nullif(m.content, ''), (select b.content from broadcasts b where b.group_id = m.group_id)) as content,
  m.accepted_at, m.scheduled_at, t.id as task, t.state, t.priority,
  t.due_at, t.attempts, t.max_attempts, t.throttles, t.claim_no, t.changed_at, t.expires_at, t.started_at, t.ordering_key, t.head,
  t.unknown, t.cancel_requested, t.category, t.node
from (select v.id from (
        select id, due_at, head, tenant, kind from tasks
        where ordering_key is not null and state = 'pending' limit :window) v
      where not v.head and v.due_at >= :since and v.due_at < :until and v.tenant = :tenant and v.kind = :kind
      order by v.due_at limit :limit) w
join tasks t on t.id = w.id join messages m on m.task = w.id
order by t.due_at, t.id
