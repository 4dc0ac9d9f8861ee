-- Lines of the roster's log. Own file: a list goes in as JSON, which each database reads in its own way.
insert into roster_log (at, tenant, source, sender, what, detail)
select coalesce(cast(:now as bigint), tidings_now()), :tenant, r.source, r.sender, r.what, r.detail
from json_to_recordset(cast(:rows as json)) as r(source text, sender text, what text, detail text)
