-- The newest messages to one recipient; walks the recipient's index like message_window.
select m.id, m.tenant, m.channel, m.recipient,
  coalesce(nullif(m.content, ''), (select b.content from broadcasts b where b.group_id = m.group_id)) as content,
  m.accepted_at, m.scheduled_at, t.id as task, t.state, t.priority,
  t.due_at, t.attempts, t.max_attempts, t.throttles, t.claim_no, t.changed_at, t.expires_at, t.started_at, t.ordering_key, t.head,
  t.unknown, t.cancel_requested, t.category, t.node
from messages m cross join tasks t
where m.tenant = :tenant and m.recipient = :recipient and m.task < :before and t.id = m.task
  and m.task >= (select min(w.task) from (
    select task from messages where tenant = :tenant and recipient = :recipient and task < :before
    order by task desc limit :window) w)
  and (cast(:channel as text) is null or m.channel = :channel)
  and (cast(:state as text) is null or t.state = :state)
  and (cast(:unknown as boolean) is null or t.unknown = :unknown)
order by m.task desc limit :limit
