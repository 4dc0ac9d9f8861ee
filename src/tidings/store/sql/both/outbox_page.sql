-- Events still to be sent, oldest first, with the facts of their message.
-- A rare move has no reason of its own: its line of history, written with it, has one.
select o.id, o.at, o.tenant, o.type, o.subject, o.body, o.target, m.channel, m.recipient, b.id as broadcast, b.xref,
  coalesce(b.schedule, (select c.schedule from occurrences c where c.created = m.id limit 1)) as schedule,
  (select h.detail from history h where h.task = m.task and h.at >= o.at and h.origin <> 'processing'
   and h.state <> 'processing' and h.detail is not null order by h.at limit 1) as detail
from (select id, at, tenant, type, subject, body, target from outbox order by id limit :limit) o
left join messages m on m.id = o.subject left join broadcasts b on b.group_id = m.group_id
order by o.id
