-- Give up a node whose beat has not moved; its own next beat then finds no row.
update nodes set state = 'dead' where id = :id and heartbeat = :heartbeat and state = 'live' returning id
