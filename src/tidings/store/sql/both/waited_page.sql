-- What has waited for a session to come back since before an instant, and has no expiry of its own: a page of it.
-- Those of a broadcast wait as long as their broadcast's grace.
select t.id, t.due_at, t.tries, t.queue, t.order_key, m.own_expiry, m.accepted_at, t.lot
from (select id, due_at, tries, queue, order_key, lot from tasks
      where queue = :queue and priority = :priority and state = 'pending' and head
        and due_at <= :before and due_at >= :from_due and (due_at > :from_due or id > :after)
      order by due_at, id limit :limit) t
join messages m on m.task = t.id
order by t.due_at, t.id
