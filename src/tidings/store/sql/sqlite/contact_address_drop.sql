-- Addresses that contacts have no more.
-- Own file: a list goes in as JSON, which each database reads in its own way.
delete from contact_addresses where (contact, channel) in (select r.value ->> 'contact', r.value ->> 'channel' from json_each(:addresses) r)
