-- One subscription.
select id, tenant, url, events, secret, active, created_at, changed_at, old_until, failing_since, problem
from subscriptions where id = :id and tenant = :tenant
