-- Active subscriptions with their signing secrets.
select id, tenant, url, events, secret, failing_since,
  case when old_until > coalesce(cast(:now as bigint), tidings_now()) then old_secret end as old_secret
from subscriptions where active and id > :after order by id limit :limit
