-- Who has this address on this channel, as far as a template may know.
select c.name, c.timezone, c.language, c.tags, c.attributes
from contact_addresses a join contacts c on c.id = a.contact
where a.tenant = :tenant and a.channel = :channel and a.address = :address
