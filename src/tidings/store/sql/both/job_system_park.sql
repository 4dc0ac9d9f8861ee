-- Nobody calls this system before an instant; a later one wins.
update job_systems set parked_until = :until, reason = :reason, version = version + 1
where name = :name and parked_until < :until
