-- What has waited for a session to come back since before an instant, and has no expiry of its own: a page of it.
-- Those of a broadcast wait as long as their broadcast's grace.
select t.id, t.due_at, t.attempts, t.queue, t.ordering_key, m.own_expiry, m.accepted_at, t.group_id
from (select id, due_at, attempts, queue, ordering_key, group_id from tasks
      where queue = :queue and priority = :priority and state = 'pending' and head
        and due_at <= :before and due_at >= :from_due and (due_at > :from_due or id > :after)
      order by due_at, id limit :limit) t
join messages m on m.task = t.id
order by t.due_at, t.id
