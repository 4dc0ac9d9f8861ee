-- Nothing starts on this queue before an instant; a later parking wins.
update queues set blocked_until = :until, block_reason = :reason
where name = :name and (blocked_until is null or blocked_until < :until)
