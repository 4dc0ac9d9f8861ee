-- The recipients of messages whose receipts say that the recipient opted out.
-- Own file: a list goes in as JSON, which each database reads in its own way.
insert into suppressions (tenant, address, channel, reason, at, evidence)
select m.tenant, case when m.recipient like '%_@_%' and m.recipient not like '%/%' then lower(m.recipient collate "C") else m.recipient end,
  m.channel, 'opted out with the provider', coalesce(cast(:now as bigint), tidings_now()), 'message ' || m.id || ': ' || substr(coalesce(r.reason, ''), 1, 200)
from json_to_recordset(cast(:rows as json)) as g(channel text, name text)
  join receipts r on r.channel = g.channel and r.name = g.name join messages m on m.task = r.task
on conflict do nothing
