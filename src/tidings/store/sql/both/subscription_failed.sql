-- Its receiver did not take an event: since when that is so, and whether it has lasted too long.
update subscriptions set failing_since = coalesce(failing_since, coalesce(cast(:now as bigint), tidings_now())),
  active = not (cast(:gone as boolean)
    or coalesce(failing_since <= coalesce(cast(:now as bigint), tidings_now()) - cast(:patience as bigint), false)),
  problem = :problem
where id = :id and active
returning active
