-- Lines of the audit trail, chained by their hashes. Own file: each database computes them in its own way; here a trigger
-- keeps the end of the chain. (Materialized: the list would be read from its start for each of its lines.)
with recursive lines(i, line) as materialized (select key, value from json_each(:rows)),
chain(i, n, hash) as (
  select -1, coalesce((select n from audit_chain), (select max(n) from audit), 0), coalesce((select hash from audit_chain), '')
  union all
  select l.i, n + 1, tidings_sha256(hash || '|' || (n + 1) || '|' || :now || '|' || (l.line ->> 'digest'))
  from chain join lines l on l.i = chain.i + 1
)
insert into audit (n, at, tenant, actor, key, action, target, origin, status, request, detail, hash)
select n, :now, l.line ->> 'tenant', l.line ->> 'actor', l.line ->> 'key', l.line ->> 'action', l.line ->> 'target',
  l.line ->> 'origin', l.line ->> 'status', l.line ->> 'request', l.line ->> 'detail', hash
from chain join lines l on l.i = chain.i
order by n
