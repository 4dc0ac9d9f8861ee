-- Nobody is told there any more.
delete from subscriptions where id = :id and tenant = :tenant returning id
