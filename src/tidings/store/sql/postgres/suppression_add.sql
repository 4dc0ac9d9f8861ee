-- Who has opted out; what is there already stays as it is.
-- Own file: a list goes in as JSON, which each database reads in its own way.
insert into suppressions (tenant, address, channel, reason, at, evidence)
select :tenant, r.address, r.channel, r.reason, coalesce(cast(:now as bigint), tidings_now()), r.evidence
from json_to_recordset(cast(:rows as json)) as r(address text, channel text, reason text, evidence text)
on conflict do nothing returning address, channel
