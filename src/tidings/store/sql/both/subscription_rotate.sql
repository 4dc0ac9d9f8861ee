-- A new secret; the one before signs as well for a while.
update subscriptions set old_secret = secret, old_until = coalesce(cast(:now as bigint), tidings_now()) + :overlap,
  secret = :secret, changed_at = coalesce(cast(:now as bigint), tidings_now())
where id = :id and tenant = :tenant
returning id
