-- The contacts that have these addresses. Own file: a list goes in as JSON, which each database reads in its own way.
select w.channel as on_channel, w.address as at_address, c.id, c.name, c.zone, c.language, c.tags, c.attributes, c.created_at, c.changed_at,
  (select string_agg(a.channel || ' ' || a.address, '
' order by a.channel) from contact_addresses a where a.contact = c.id) as addresses
from json_to_recordset(cast(:wanted as json)) as w(channel text, address text)
  join contact_addresses o on o.tenant = :tenant and o.channel = w.channel and o.address = w.address
  join contacts c on c.id = o.contact
