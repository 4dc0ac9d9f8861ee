-- A queue without a rate has no row.
delete from rate_limits where queue = :queue
