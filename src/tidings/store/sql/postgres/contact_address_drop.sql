-- Addresses that contacts have no more.
-- Own file: a list goes in as JSON, which each database reads in its own way.
delete from contact_addresses where ctid = any(array(
  select (select a.ctid from contact_addresses a where a.contact = r.contact and a.channel = r.channel)
  from json_to_recordset(cast(:addresses as json)) as r(contact text, channel text)))
