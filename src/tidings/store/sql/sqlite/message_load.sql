-- The contents of claimed tasks, and what may keep them from being sent: mostly nothing, and then it costs nothing.
-- Own file: a list goes in as an array in memory.
select m.task, m.id, m.tenant, m.channel, m.recipient, case when m.content = '' then b.content else m.content end,
  m.accepted_at, b.state,
  case when (select 1 from queues where mode <> 'live' limit 1) is not null
    then (select q.mode from queues q where q.name = m.channel) end,
  case when (select 1 from queues where share < 100 limit 1) is not null
    then (select q.share from queues q where q.name = m.channel) end,
  case when (select 1 from suppressions limit 1) is not null then (select s.reason from suppressions s
   where s.tenant = m.tenant and s.channel in (m.channel, '') and s.address = case
     when m.recipient like '%_@_%' and m.recipient not like '%/%' then lower(m.recipient) else m.recipient end limit 1) end,
  b.retry_in, m.scheduled_at
from messages m left join broadcasts b on b.group_id = m.group_id
where m.task in (select value from carray(:ids))
