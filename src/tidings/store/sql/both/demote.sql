-- Take the turn from an untried task when an earlier one of its key has come in behind it.
update tasks set head = false
where queue = :queue and order_key = :order_key and order_key is not null and state = 'pending' and head
  and tries = 0 and throttles = 0
  and exists (select 1 from tasks e
              where e.queue = :queue and e.order_key = :order_key and e.state = 'pending'
                and (e.first_due < tasks.first_due or (e.first_due = tasks.first_due and e.id < tasks.id)))
