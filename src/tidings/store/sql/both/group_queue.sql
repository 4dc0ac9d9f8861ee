-- Move what waits to another queue: to one that nobody serves, or back. What was never tried keeps its pace.
update tasks set queue = :queue, expires_at = expires_at + :later,
  due_at = case when attempts = 0 and throttles = 0 then due_at + :later else due_at end
where group_id = :group_id and state = 'pending' and id > :after and id <= :upto and queue <> :queue
