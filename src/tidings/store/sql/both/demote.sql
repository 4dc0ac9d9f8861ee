-- Take the turn from an untried task when an earlier one of its key has come in behind it.
update tasks set head = false
where queue = :queue and ordering_key = :ordering_key and ordering_key is not null and state = 'pending' and head
  and attempts = 0 and throttles = 0
  and exists (select 1 from tasks e
              where e.queue = :queue and e.ordering_key = :ordering_key and e.state = 'pending'
                and (e.first_due < tasks.first_due or (e.first_due = tasks.first_due and e.id < tasks.id)))
