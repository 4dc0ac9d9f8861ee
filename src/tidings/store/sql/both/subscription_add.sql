-- Add a subscription.
insert into subscriptions (id, tenant, url, events, secret, created_at, changed_at)
values (:id, :tenant, :url, :events, :secret, coalesce(cast(:now as bigint), tidings_now()),
  coalesce(cast(:now as bigint), tidings_now()))
