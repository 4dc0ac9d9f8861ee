-- What was sent, newest first, each with what the other side called it; walks tasks by id between two places.
select m.id, m.channel, m.recipient,
  coalesce(nullif(m.content, ''), (select b.content from broadcasts b where b.group_id = m.group_id)) as content,
  m.accepted_at, m.scheduled_at, t.id as task, t.attempts, t.unknown,
  t.changed_at as sent_at,
  (select h.detail from history h where h.task = t.id and h.state = 'done' and h.detail is not null
   order by h.at desc limit 1) as receipt
from tasks t cross join messages m
where t.id < :before and t.id >= :floor and m.task = t.id and t.tenant = :tenant and t.state = 'done'
  and (cast(:channel as text) is null or m.channel = :channel)
  and (cast(:recipient as text) is null or m.recipient = :recipient)
order by t.id desc limit :limit
