-- A new job; nothing runs yet.
insert into jobs (id, tenant, name, pair, mapping_hash, definition, created_at, changed_at)
select :id, p.tenant, :name, p.n, :mapping_hash, :definition, :at, :at
from job_pairs p where p.tenant = :tenant and p.source = :source and p.target = :target
returning n
