-- A row if all these cards and addresses stand as they were meant to, none if somebody else was quicker.
--
-- Own file: a list goes in as JSON, which each database reads in its own way.
select 1 as one
where json_array_length(:addresses) = (
    select count(*) from json_each(:addresses) r cross join contact_addresses a
    where a.tenant = :tenant and a.channel = r.value ->> 'channel' and a.address = r.value ->> 'address'
      and a.contact = r.value ->> 'contact')
  and json_array_length(:cards) = (
    select count(*) from json_each(:cards) r cross join contacts c
    where c.id = r.value ->> 'id' and c.tenant = :tenant
      and c.name is r.value ->> 'name' and c.timezone is r.value ->> 'timezone' and c.language is r.value ->> 'language'
      and c.tags is r.value ->> 'tags' and c.attributes is r.value ->> 'attributes')
