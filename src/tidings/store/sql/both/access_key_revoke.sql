-- The key opens nothing any more.
update api_keys set revoked_at = coalesce(cast(:now as bigint), tidings_now()), old_digest = null, old_until = null
where id = :id and revoked_at is null
returning id
