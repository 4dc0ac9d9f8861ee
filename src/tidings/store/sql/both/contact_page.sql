-- Contacts, newest first, from a place on.
select c.id, c.name, c.timezone, c.language, c.tags, c.attributes, c.created_at, c.changed_at,
  (select string_agg(a.channel || ' ' || a.address, '
' order by a.channel) from contact_addresses a where a.contact = c.id) as addresses
from contacts c where c.tenant = :tenant and c.id < :before order by c.id desc limit :limit
