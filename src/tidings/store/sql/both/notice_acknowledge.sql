-- Somebody has seen it. No row back: there is no such notice, or it was acknowledged before.
update notices set acknowledged_at = :at, acknowledged_by = :by_whom
where id = :id and tenant = :tenant and acknowledged_at is null returning id
