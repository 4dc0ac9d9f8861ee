-- Lines of the roster's log. Own file: a list goes in as JSON, which each database reads in its own way.
insert into roster_log (at, tenant, source, sender, what, detail)
select :now, :tenant, r.value ->> 'source', r.value ->> 'sender', r.value ->> 'what', r.value ->> 'detail'
from json_each(:rows) r
