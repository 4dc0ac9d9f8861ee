-- Secrets that are not stored under the current key.
select kind, place, tenant, id, value
from (select 'secret' as kind, 'secrets' as place, '' as tenant, name as id, value from secrets
  union all select 'subscription', 'subscriptions', tenant, id, secret from subscriptions
  union all select 'subscription_old', 'subscriptions', tenant, id, old_secret from subscriptions
    where old_secret is not null) as stored
where value not like :current order by kind, id limit :limit
