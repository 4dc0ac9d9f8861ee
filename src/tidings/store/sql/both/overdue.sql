-- Expired rows among what is due on one queue, a page at a time.
select id, due_at, expires_at, tries, queue, order_key from tasks
where queue = :queue and priority = :priority and state = 'pending' and head
  and due_at <= coalesce(cast(:now as bigint), tidings_now()) and due_at >= :from_due
order by due_at, id limit :limit
