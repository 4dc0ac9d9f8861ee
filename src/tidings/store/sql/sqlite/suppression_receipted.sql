-- The recipients of messages whose receipts say that the recipient opted out.
-- Own file: a list goes in as JSON, which each database reads in its own way.
insert into suppressions (tenant, address, channel, reason, at, evidence)
select m.tenant, case when m.recipient like '%_@_%' and m.recipient not like '%/%' then lower(m.recipient) else m.recipient end,
  m.channel, 'opted out with the provider', :now, 'message ' || m.id || ': ' || substr(coalesce(r.reason, ''), 1, 200)
from json_each(:rows) g join receipts r on r.channel = g.value ->> 'channel' and r.name = g.value ->> 'name'
  join messages m on m.task = r.task where true
on conflict do nothing
