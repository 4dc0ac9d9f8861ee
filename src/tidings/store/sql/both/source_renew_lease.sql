-- A heartbeat. No row back: somebody else has taken over.
update sources set until = coalesce(cast(:now as bigint), tidings_now()) + :lease
where name = :name and token = :token and holder is not null
returning token
