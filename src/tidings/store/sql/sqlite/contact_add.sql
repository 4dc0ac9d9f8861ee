-- New contacts.
-- Own file: a list goes in as JSON, which each database reads in its own way.
insert into contacts (id, tenant, name, timezone, language, tags, attributes, created_at, changed_at)
select r.value ->> 'id', :tenant, r.value ->> 'name', r.value ->> 'timezone', r.value ->> 'language', r.value ->> 'tags',
  r.value ->> 'attributes', r.value ->> 'changed_at', r.value ->> 'changed_at'
from json_each(:cards) r where true returning id
