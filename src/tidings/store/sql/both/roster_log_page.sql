-- What was done with the roster, newest first.
select n, at, source, sender, what, detail from roster_log
where tenant = :tenant and n < :before and (cast(:sender as text) is null or sender = :sender) order by n desc limit :limit
