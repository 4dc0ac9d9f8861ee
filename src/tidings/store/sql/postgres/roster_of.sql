-- Those of these senders who are on the roster, for a source or for all of them.
-- Own file: a list goes in as JSON, which each database reads in its own way.
select r.source, r.sender, r.name, r.squad, r.role from json_array_elements_text(cast(:senders as json)) g
  cross join lateral (select * from roster where tenant = :tenant and sender = g.value offset 0) r
