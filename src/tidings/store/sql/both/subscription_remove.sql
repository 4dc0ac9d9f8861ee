-- Remove a subscription.
delete from subscriptions where id = :id and tenant = :tenant returning id
