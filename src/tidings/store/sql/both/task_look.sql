-- The standing of one task.
select id, tenant, state, claim_no, attempts, unknown, queue, ordering_key, node, due_at, expires_at, cancel_requested
from tasks where id = :id
