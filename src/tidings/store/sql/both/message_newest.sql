-- The newest messages with who holds them, for a page that is looked at.
select m.id, m.tenant, m.channel, m.recipient,
  coalesce(nullif(m.content, ''), (select b.content from broadcasts b where b.lot = m.lot)) as content,
  m.accepted_at, m.scheduled_at, t.id as task, t.state, t.priority,
  t.due_at, t.tries, t.max_tries, t.throttles, t.claim_no, t.changed_at, t.expires_at, t.started_at, t.order_key, t.head,
  t.unknown, t.cancel_asked, t.category, t.node, n.name as holder
from tasks t cross join messages m left join nodes n on n.id = t.node
where t.kind = :kind and m.task = t.id and t.tenant = :tenant
  and t.id > (select max(id) from tasks) - :window
order by t.id desc limit :limit
