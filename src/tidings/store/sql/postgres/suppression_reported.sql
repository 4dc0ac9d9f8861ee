-- The recipients of messages that their providers refused because the recipient opted out.
-- Own file: a list goes in as JSON, which each database reads in its own way.
insert into suppressions (tenant, address, channel, reason, at, evidence)
select m.tenant, case when m.recipient like '%_@_%' and m.recipient not like '%/%' then lower(m.recipient collate "C") else m.recipient end,
  m.channel, 'opted out with the provider', coalesce(cast(:now as bigint), tidings_now()), 'message ' || m.id || ': ' || substr(r.detail, 1, 200)
from json_to_recordset(cast(:rows as json)) as r(task bigint, detail text) join messages m on m.task = r.task
on conflict do nothing
