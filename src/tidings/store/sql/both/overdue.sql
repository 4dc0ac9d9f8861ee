-- Expired rows among what is due on one queue, a page at a time.
-- The time is a subquery: PostgreSQL asks a volatile function for each row, past the end of what is due.
select id, due_at, expires_at, attempts, queue, ordering_key from tasks
where queue = :queue and priority = :priority and state = 'pending' and head
  and due_at <= (select coalesce(cast(:now as bigint), tidings_now()))
  and due_at >= :from_due and (due_at > :from_due or id > :after)
order by due_at, id limit :limit
