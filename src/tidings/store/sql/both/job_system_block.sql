-- Nobody calls this system before an instant; a later one wins.
update job_systems set blocked_until = :until, reason = :reason, version = version + 1
where name = :name and blocked_until < :until
