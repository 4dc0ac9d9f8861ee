-- Conversations by their last message, newest first, from before a place.
select conversation, max(n) as n, count(*) as turns, max(at) as at from turns
where tenant = :tenant and n < cast(:before as bigint) group by conversation order by 2 desc limit :limit
