-- What is due on one queue and priority, as it will be once claimed.
-- Own file: SQLite has a single writer, nothing to lock row by row.
select id, tenant, queue, kind, priority, due_at, attempts + 1, throttles, claim_no + 1, crashes, unknown, ordering_key,
  expires_at, max_attempts, 0
from tasks indexed by tasks_due
where queue = :queue and priority = :priority and state = 'pending' and head and due_at <= :now
order by due_at limit :limit
