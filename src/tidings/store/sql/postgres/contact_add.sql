-- New contacts.
-- Own file: a list goes in as JSON, which each database reads in its own way.
insert into contacts (id, tenant, name, timezone, language, tags, attributes, created_at, changed_at)
select r.id, :tenant, r.name, r.timezone, r.language, r.tags, r.attributes, r.changed_at, r.changed_at
from json_to_recordset(cast(:cards as json))
  as r(id text, name text, timezone text, language text, tags text, attributes text, changed_at bigint)
returning id
