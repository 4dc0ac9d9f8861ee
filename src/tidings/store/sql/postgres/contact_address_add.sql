-- Addresses of contacts; one that somebody has is left out.
-- Own file: a list goes in as JSON, which each database reads in its own way.
insert into contact_addresses (tenant, channel, address, contact)
select :tenant, r.channel, r.address, r.contact
from json_to_recordset(cast(:addresses as json)) as r(contact text, channel text, address text)
on conflict do nothing returning contact
