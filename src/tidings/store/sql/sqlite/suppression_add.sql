-- Who has opted out; what is there already stays as it is.
-- Own file: a list goes in as JSON, which each database reads in its own way.
insert into suppressions (tenant, address, channel, reason, at, evidence)
select :tenant, r.value ->> 'address', r.value ->> 'channel', r.value ->> 'reason', :now, r.value ->> 'evidence'
from json_each(:rows) r where true
on conflict do nothing returning address, channel
