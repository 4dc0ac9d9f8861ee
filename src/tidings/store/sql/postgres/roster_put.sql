-- Put people on the roster, or change them. Own file: a list goes in as JSON, which each database reads in its own way.
insert into roster (tenant, source, sender, name, squad, role, changed_at)
select :tenant, r.source, r.sender, r.name, r.squad, r.role, coalesce(cast(:now as bigint), tidings_now())
from json_to_recordset(cast(:rows as json)) as r(source text, sender text, name text, squad text, role text)
on conflict (tenant, sender, source) do update
set name = excluded.name, squad = excluded.squad, role = excluded.role, changed_at = excluded.changed_at
