-- Somebody has taken it on. No row back: there is no such alert, or it is over or taken.
update alerts set acknowledged_at = :at, acknowledged_by = :by_whom
where id = :id and tenant = :tenant and state = 'raised' and acknowledged_at is null returning id
