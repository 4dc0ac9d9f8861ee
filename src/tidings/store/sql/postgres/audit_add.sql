-- Lines of the audit trail. Own file: a list goes in as JSON, which each database reads in its own way.
insert into audit (at, tenant, who, key, what, target, origin, status, request, detail)
select coalesce(cast(:now as bigint), tidings_now()), r.tenant, r.who, r.key, r.what, r.target, r.origin, r.status, r.request,
  r.detail
from json_to_recordset(cast(:rows as json)) as r(tenant text, who text, key text, what text, target text, origin text,
  status integer, request text, detail text)
