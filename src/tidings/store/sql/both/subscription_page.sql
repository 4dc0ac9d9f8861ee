-- Subscriptions of a tenant, newest first.
select id, tenant, url, events, active, created_at, changed_at, old_until, failing_since, problem
from subscriptions where tenant = :tenant and (cast(:before as text) is null or id < :before)
order by id desc limit :limit
