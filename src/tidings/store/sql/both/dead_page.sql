-- Dead letters, newest first, each with the last thing that was said about it; walks like message_ended.
select m.id, m.tenant, m.channel, m.recipient,
  coalesce(nullif(m.content, ''), (select b.content from broadcasts b where b.group_id = m.group_id)) as content,
  m.accepted_at, m.scheduled_at, t.id as task, t.state, t.priority,
  t.due_at, t.attempts, t.max_attempts, t.throttles, t.claim_no, t.changed_at, t.expires_at, t.started_at, t.ordering_key, t.head,
  t.unknown, t.cancel_requested, t.category, t.node,
  (select h.detail from history h where h.task = t.id and h.detail is not null order by h.at desc limit 1) as error
from tasks t cross join messages m
where t.state = 'failed' and t.state >= 'expired' and t.state <= 'failed' and t.id < :before
  and m.task = t.id and t.tenant = :tenant
  and t.id >= (select min(w.id) from (
    select id from tasks where state = 'failed' and state >= 'expired' and state <= 'failed' and id < :before
    order by id desc limit :window) w)
  and (cast(:channel as text) is null or m.channel = :channel)
  and (cast(:category as text) is null or t.category = :category)
  and (cast(:unknown as boolean) is null or t.unknown = :unknown)
order by t.id desc limit :limit
