-- Contacts as they are now, if nobody has changed them since they were read. Own file: a list goes in as JSON, which each database reads in its own way.
update contacts c set name = r.name, zone = r.zone, language = r.language, tags = r.tags, attributes = r.attributes,
  changed_at = r.changed_at
from json_to_recordset(cast(:cards as json))
  as r(id text, name text, zone text, language text, tags text, attributes text, changed_at bigint, was bigint)
where c.id = r.id and c.tenant = :tenant and c.changed_at = r.was
returning c.id
