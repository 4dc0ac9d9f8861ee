-- One message with its standing and who holds it.
select m.id, m.tenant, m.channel, m.recipient,
  coalesce(nullif(m.content, ''), (select b.content from broadcasts b where b.group_id = m.group_id)) as content,
  m.accepted_at, m.scheduled_at, t.id as task, t.state, t.priority,
  t.due_at, t.attempts, t.max_attempts, t.throttles, t.claim_no, t.changed_at, t.expires_at, t.started_at, t.ordering_key, t.head,
  t.unknown, t.cancel_requested, t.category, t.node, t.queue as lane, n.name as holder
from messages m join tasks t on t.id = m.task left join nodes n on n.id = t.node
where m.id = :id and m.tenant = :tenant
