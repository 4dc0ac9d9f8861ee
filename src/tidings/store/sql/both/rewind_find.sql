-- The unfinished rewind of a server.
select survived_at, found_at from rewinds where server = :server and finished_at is null
