-- One key, if the caller may see it.
select id, tenant, name, prefix, role, scopes, rate, created_at, created_by, expires_at, rotated_at, old_until, revoked_at,
  last_used_at
from api_keys where id = :id and (cast(:tenant as text) is null or tenant = :tenant)
