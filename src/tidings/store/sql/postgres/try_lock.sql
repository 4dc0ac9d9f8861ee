-- Told at once whether a twin of this call is under way. Own file: advisory locks.
select pg_try_advisory_xact_lock(hashtextextended(:name, 11)) as free
