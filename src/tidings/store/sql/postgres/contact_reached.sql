-- Who has these addresses on one channel.
-- Own file: a list goes in as JSON, which each database reads in its own way.
-- Looked up one by one (`offset 0`), because a plan made on an empty table would walk through all of them later.
select w.address, c.id, c.name, c.timezone, c.language, c.tags, c.attributes
from json_array_elements_text(cast(:addresses as json)) as w(address)
  cross join lateral (select a.contact from contact_addresses a
    where a.tenant = :tenant and a.channel = :channel and a.address = w.address offset 0) a
  cross join lateral (select * from contacts c where c.id = a.contact offset 0) c
