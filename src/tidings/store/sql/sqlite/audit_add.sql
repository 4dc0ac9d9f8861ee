-- Lines of the audit trail. Own file: a list goes in as JSON, which each database reads in its own way.
insert into audit (at, tenant, who, key, what, target, origin, status, request, detail)
select :now, r.value ->> 'tenant', r.value ->> 'who', r.value ->> 'key', r.value ->> 'what', r.value ->> 'target',
  r.value ->> 'origin', r.value ->> 'status', r.value ->> 'request', r.value ->> 'detail'
from json_each(:rows) r
