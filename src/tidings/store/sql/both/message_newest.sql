-- The newest messages with who holds them, for a page that is looked at.
select m.id, m.tenant, m.channel, m.recipient,
  coalesce(nullif(m.content, ''), (select b.content from broadcasts b where b.group_id = m.group_id)) as content,
  m.accepted_at, m.scheduled_at, t.id as task, t.state, t.priority,
  t.due_at, t.attempts, t.max_attempts, t.throttles, t.claim_no, t.changed_at, t.expires_at, t.started_at, t.ordering_key, t.head,
  t.unknown, t.cancel_requested, t.category, t.node, n.name as holder
from tasks t cross join messages m left join nodes n on n.id = t.node
where t.kind = :kind and m.task = t.id and t.tenant = :tenant
  and t.id > (select max(id) from tasks) - :window
order by t.id desc limit :limit
