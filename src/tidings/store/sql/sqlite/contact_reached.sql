-- Who has these addresses on one channel.
-- Own file: a list goes in as JSON, which each database reads in its own way.
select a.address, c.id, c.name, c.timezone, c.language, c.tags, c.attributes
from json_each(:addresses) w cross join contact_addresses a cross join contacts c
where a.tenant = :tenant and a.channel = :channel and a.address = w.value and c.id = a.contact
