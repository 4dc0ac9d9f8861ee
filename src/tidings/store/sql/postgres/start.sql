-- Write down that these claims are about to act; only those still ours come back.
-- Own file: arrays.
update tasks t set started_at = coalesce(:now::bigint, tidings_now())
from unnest(:ids::bigint[], :claims::int[]) g(id, claim_no)
where t.id = g.id and t.claim_no = g.claim_no
    and t.state is not distinct from 'processing' and t.node is not distinct from :node  -- found by id, never by node
returning t.id
