-- One contact; its addresses are a line each, channel and address with a space between.
select c.id, c.name, c.timezone, c.language, c.tags, c.attributes, c.created_at, c.changed_at,
  (select string_agg(a.channel || ' ' || a.address, '
' order by a.channel) from contact_addresses a where a.contact = c.id) as addresses
from contacts c where c.id = :id and c.tenant = :tenant
