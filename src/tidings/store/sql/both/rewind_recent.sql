-- The rewinds found lately.
select server, survived_at, found_at, finished_at, unknown from rewinds where found_at > :since order by found_at desc limit :limit
