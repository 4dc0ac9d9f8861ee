-- A queue without a rate has no row.
delete from limits where queue = :queue
