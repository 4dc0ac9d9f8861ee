-- Contacts as they are now, if nobody has changed them since they were read.
-- Own file: a list goes in as JSON, which each database reads in its own way.
-- Found one by one and written by their place: a plan made on an empty table would walk through all of them later.
update contacts c set name = r.name, timezone = r.timezone, language = r.language, tags = r.tags, attributes = r.attributes,
  changed_at = r.changed_at
from (select r.*, (select c.ctid from contacts c where c.id = r.id and c.tenant = :tenant) as place
  from json_to_recordset(cast(:cards as json))
    as r(id text, name text, timezone text, language text, tags text, attributes text, changed_at bigint, was bigint)
  offset 0) r
where c.ctid = r.place and c.changed_at = r.was
returning c.id
