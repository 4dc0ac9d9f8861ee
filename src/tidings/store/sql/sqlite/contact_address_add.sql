-- Addresses of contacts; one that somebody has is left out.
-- Own file: a list goes in as JSON, which each database reads in its own way.
insert into contact_addresses (tenant, channel, address, contact)
select :tenant, r.value ->> 'channel', r.value ->> 'address', r.value ->> 'contact' from json_each(:addresses) r where true
on conflict do nothing returning contact
