-- The key that a caller names by its public part.
select id, tenant, name, prefix, digest, old_digest, old_until, role, scopes, rate, expires_at, revoked_at, last_used_at
from api_keys where prefix = :prefix
