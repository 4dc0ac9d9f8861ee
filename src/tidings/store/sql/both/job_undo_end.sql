-- It may be begun again.
update jobs set blocked_until = null where n = :n and version = :version and state in ('completed', 'failed', 'cancelled')
