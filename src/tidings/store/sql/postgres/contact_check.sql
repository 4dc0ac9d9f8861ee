-- A row if all these cards and addresses stand as they were meant to, none if somebody else was quicker.
-- Own file: a list goes in as JSON, which each database reads in its own way.
select 1 as one
where json_array_length(cast(:addresses as json)) = (
    select count(*) from json_to_recordset(cast(:addresses as json)) as r(contact text, channel text, address text)
      join contact_addresses a on a.tenant = :tenant and a.channel = r.channel and a.address = r.address
    where a.contact = r.contact)
  and json_array_length(cast(:cards as json)) = (
    select count(*) from json_to_recordset(cast(:cards as json))
        as r(id text, name text, zone text, language text, tags text, attributes text)
      join contacts c on c.id = r.id and c.tenant = :tenant
    where (c.name, c.zone, c.language, c.tags, c.attributes)
      is not distinct from (r.name, r.zone, r.language, r.tags, r.attributes))
