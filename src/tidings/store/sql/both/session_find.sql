-- Whose session this is, with the key that it stands for; a key of the settings has no row.
select s.owner, s.expires_at as session_expires_at, k.id, k.tenant, k.name, k.role, k.scopes, k.rate, k.expires_at, k.revoked_at,
  k.last_used_at
from sessions s left join api_keys k on k.id = s.owner
where s.digest = :digest and s.expires_at > coalesce(cast(:now as bigint), tidings_now())
