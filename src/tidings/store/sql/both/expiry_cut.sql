-- Bring an expiry forward to now: a rule says that it has waited long enough.
update tasks set expires_at = coalesce(cast(:now as bigint), tidings_now())
where id = :id and state = 'pending' and (expires_at is null or expires_at > coalesce(cast(:now as bigint), tidings_now()))
returning id
