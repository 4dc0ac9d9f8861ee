-- The contacts that have these addresses.
-- Own file: a list goes in as JSON, which each database reads in its own way.
-- Looked up one by one (`offset 0`), because a plan made on an empty table would walk through all of them later.
select w.channel as on_channel, w.address as at_address, c.id, c.name, c.timezone, c.language, c.tags, c.attributes, c.created_at, c.changed_at,
  (select string_agg(a.channel || ' ' || a.address, '
' order by a.channel) from contact_addresses a where a.contact = c.id) as addresses
from json_to_recordset(cast(:wanted as json)) as w(channel text, address text)
  cross join lateral (select o.contact from contact_addresses o
    where o.tenant = :tenant and o.channel = w.channel and o.address = w.address offset 0) o
  cross join lateral (select * from contacts c where c.id = o.contact offset 0) c
