-- Whether anything is due on a queue, for showing how long the line is (counted up to a thousand).
select count(*) as due from (
  select id from tasks where queue = :queue and priority = :priority and state = 'pending' and head
    and due_at <= coalesce(cast(:now as bigint), tidings_now()) order by due_at limit 1000) d
