-- The first messages of one queue and priority that go out between two instants.
select m.id, m.tenant, m.channel, m.recipient,
  coalesce(nullif(m.content, ''), (select b.content from broadcasts b where b.group_id = m.group_id)) as content,
  m.accepted_at, m.scheduled_at, t.id as task, t.state, t.priority,
  t.due_at, t.attempts, t.max_attempts, t.throttles, t.claim_no, t.changed_at, t.expires_at, t.started_at, t.ordering_key, t.head,
  t.unknown, t.cancel_requested, t.category, t.node
from (select id from tasks
      where queue = :queue and priority = :priority and state = 'pending' and head
        and due_at >= :since and due_at < :until order by due_at limit :limit) w
join tasks t on t.id = w.id join messages m on m.task = w.id
where t.tenant = :tenant
order by t.due_at, t.id
