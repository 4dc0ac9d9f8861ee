-- A row if all these cards and addresses stand as they were meant to, none if somebody else was quicker.
-- Own file: a list goes in as JSON, which each database reads in its own way.
-- Looked up one by one (`offset 0`), because a plan made on an empty table would walk through all of them later.
select 1 as one
where json_array_length(cast(:addresses as json)) = (
    select count(*) from json_to_recordset(cast(:addresses as json)) as r(contact text, channel text, address text)
      cross join lateral (select a.contact from contact_addresses a
        where a.tenant = :tenant and a.channel = r.channel and a.address = r.address offset 0) a
    where a.contact = r.contact)
  and json_array_length(cast(:cards as json)) = (
    select count(*) from json_to_recordset(cast(:cards as json))
        as r(id text, name text, timezone text, language text, tags text, attributes text)
      cross join lateral (select * from contacts c where c.id = r.id and c.tenant = :tenant offset 0) c
    where (c.name, c.timezone, c.language, c.tags, c.attributes)
      is not distinct from (r.name, r.timezone, r.language, r.tags, r.attributes))
