-- Declare a node dead whose heartbeat has not changed; its own next heartbeat then finds no row.
update nodes set state = 'dead' where id = :id and heartbeat = :heartbeat and state = 'live' returning id
