-- The recipients of messages that their providers refused because the recipient opted out.
-- Own file: a list goes in as JSON, which each database reads in its own way.
insert into suppressions (tenant, address, channel, reason, at, evidence)
select m.tenant, case when m.recipient like '%_@_%' and m.recipient not like '%/%' then lower(m.recipient) else m.recipient end,
  m.channel, 'opted out with the provider', :now, 'message ' || m.id || ': ' || substr(r.value ->> 'detail', 1, 200)
from json_each(:rows) r join messages m on m.task = r.value ->> 'task' where true
on conflict do nothing
