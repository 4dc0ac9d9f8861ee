-- The contacts that have these addresses.
-- Own file: a list goes in as JSON, which each database reads in its own way.
select o.channel as on_channel, o.address as at_address, c.id, c.name, c.timezone, c.language, c.tags, c.attributes, c.created_at, c.changed_at,
  (select string_agg(a.channel || ' ' || a.address, '
' order by a.channel) from contact_addresses a where a.contact = c.id) as addresses
from json_each(:wanted) w cross join contact_addresses o cross join contacts c
where o.tenant = :tenant and o.channel = w.value ->> 'channel' and o.address = w.value ->> 'address' and c.id = o.contact
