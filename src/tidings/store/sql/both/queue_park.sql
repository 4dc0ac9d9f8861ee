-- Nothing starts on this queue before an instant; a later parking wins.
update queues set parked_until = :until, park_reason = :reason
where name = :name and (parked_until is null or parked_until < :until)
