-- The members of a list in the order of their ids, from a place on.
select c.id, c.name, c.timezone, c.language, c.tags, c.attributes, c.created_at, c.changed_at,
  (select string_agg(a.channel || ' ' || a.address, '
' order by a.channel) from contact_addresses a where a.contact = c.id) as addresses
from list_members m cross join contacts c
where m.list = :list and m.contact > :after and c.id = m.contact order by m.contact limit :limit
