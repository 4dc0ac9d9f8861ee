-- The key opens nothing any more; no row back: it was revoked before, or it is the last one that runs the engine.
update api_keys set revoked_at = coalesce(cast(:now as bigint), tidings_now()), old_digest = null, old_until = null
where id = :id and revoked_at is null
  and (role <> 'admin' or tenant <> 'default' or scopes <> '[]' or cast(:has_other as boolean)
    or coalesce(expires_at <= coalesce(cast(:now as bigint), tidings_now()), false)
    or exists (select 1 from api_keys other where other.id <> :id and other.role = 'admin' and other.tenant = 'default'
      and other.scopes = '[]' and other.revoked_at is null
      and (other.expires_at is null or other.expires_at > coalesce(cast(:now as bigint), tidings_now()))))
returning id
