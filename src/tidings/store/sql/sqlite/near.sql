-- What is due on one queue and priority. Own file: SQLite has a single writer, nothing to lock row by row.
select due_at, id, tenant, queue, kind, priority, tries, throttles, claim_no, crashes, unknown, order_key, expires_at,
  max_tries
from tasks indexed by tasks_due
where queue = :queue and priority = :priority and state = 'pending' and head and due_at <= :now
order by due_at limit :limit
