-- Reserve send instants: the next one free is :next_at.
update rate_limits set next_at = :next_at where queue = :queue
