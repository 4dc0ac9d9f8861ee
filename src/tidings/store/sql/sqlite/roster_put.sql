-- Put people on the roster, or change them. Own file: a list goes in as JSON, which each database reads in its own way.
insert into roster (tenant, source, sender, name, squad, role, changed_at)
select :tenant, r.value ->> 'source', r.value ->> 'sender', r.value ->> 'name', r.value ->> 'squad', r.value ->> 'role', :now
from json_each(:rows) r where true
on conflict (tenant, sender, source) do update
set name = excluded.name, squad = excluded.squad, role = excluded.role, changed_at = excluded.changed_at
