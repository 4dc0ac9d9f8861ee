-- Those of these senders who are on the roster, for a source or for all of them.
-- Own file: a list goes in as JSON, which each database reads in its own way.
select r.source, r.sender, r.name, r.squad, r.role from json_each(:senders) g
  cross join roster r where r.tenant = :tenant and r.sender = g.value
