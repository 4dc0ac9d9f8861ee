-- The next dead letters in the order they came in, for moving many of them.
select id, queue, kind, tenant, category, unknown, attempts, ordering_key, changed_at
from tasks where state = 'failed' and state >= 'expired' and state <= 'failed' and id > :after
order by id limit :limit
