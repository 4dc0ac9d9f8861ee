-- The standing of one task.
select id, state, claim_no, tries, unknown, queue, order_key, node, due_at, expires_at, cancel_asked
from tasks where id = :id
