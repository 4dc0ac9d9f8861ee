-- Contacts as they are now, if nobody has changed them since they were read.
-- Own file: a list goes in as JSON, which each database reads in its own way.
update contacts set name = r.value ->> 'name', timezone = r.value ->> 'timezone', language = r.value ->> 'language',
  tags = r.value ->> 'tags', attributes = r.value ->> 'attributes', changed_at = r.value ->> 'changed_at'
from json_each(:cards) r
where contacts.id = r.value ->> 'id' and +contacts.tenant = :tenant and contacts.changed_at = r.value ->> 'was'
returning contacts.id
