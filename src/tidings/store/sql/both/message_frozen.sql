-- A message of a broadcast that has no task yet; it stands as its broadcast stands.
select m.id, m.tenant, m.channel, m.recipient, coalesce(nullif(m.content, ''), b.content) as content, m.accepted_at,
  m.scheduled_at, m.task, case when b.state in ('cancelled', 'expired') then b.state else 'pending' end as state,
  5 as priority, coalesce(b.scheduled_at, m.scheduled_at) as due_at, 0 as attempts, null as max_attempts, 0 as throttles,
  0 as claim_no, b.changed_at, null as expires_at, null as started_at, null as ordering_key, true as head,
  false as unknown, b.state = 'cancelled' as cancel_requested, null as category, null as node, null as holder,
  b.id as broadcast, b.state as broadcast_state, b.starts as broadcast_trigger, b.reason as broadcast_reason
from messages m join broadcasts b on b.group_id = m.group_id
where m.id = :id and m.tenant = :tenant and not exists (select 1 from tasks t where t.id = m.task)
