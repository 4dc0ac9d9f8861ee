-- Keys, newest first; of one tenant or of all.
select id, tenant, name, prefix, role, scopes, rate, created_at, created_by, expires_at, rotated_at, old_until, revoked_at,
  last_used_at
from api_keys
where (cast(:tenant as text) is null or tenant = :tenant) and (cast(:before as text) is null or id < :before)
order by id desc limit :limit
