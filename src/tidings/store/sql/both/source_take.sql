-- Begin to read a source, if it is still as it was judged. The new token is the fence.
update sources set token = token + 1, holder = :holder, began_at = coalesce(cast(:now as bigint), tidings_now()),
  until = coalesce(cast(:now as bigint), tidings_now()) + :lease
where name = :name and token = :token and due_at = :due_at and coalesce(until, 0) = coalesce(cast(:until as bigint), 0)
returning token
