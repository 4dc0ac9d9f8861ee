-- Another secret; the one before is good for a while.
update api_keys set old_digest = digest, old_until = coalesce(cast(:now as bigint), tidings_now()) + cast(:overlap as bigint),
  digest = :digest, rotated_at = coalesce(cast(:now as bigint), tidings_now())
where id = :id and revoked_at is null
returning id
