-- The newest messages of one of the states that have an index; walks that index like message_window.
select m.id, m.tenant, m.channel, m.recipient,
  coalesce(nullif(m.content, ''), (select b.content from broadcasts b where b.group_id = m.group_id)) as content,
  m.accepted_at, m.scheduled_at, t.id as task, t.state, t.priority,
  t.due_at, t.attempts, t.max_attempts, t.throttles, t.claim_no, t.changed_at, t.expires_at, t.started_at, t.ordering_key, t.head,
  t.unknown, t.cancel_requested, t.category, t.node
from tasks t cross join messages m
where t.state = :state and t.state >= 'expired' and t.state <= 'failed' and t.id < :before
  and m.task = t.id and t.tenant = :tenant
  and t.id >= (select min(w.id) from (
    select id from tasks where state = :state and state >= 'expired' and state <= 'failed' and id < :before
    order by id desc limit :window) w)
  and (cast(:channel as text) is null or m.channel = :channel)
  and (cast(:unknown as boolean) is null or t.unknown = :unknown)
order by t.id desc limit :limit
