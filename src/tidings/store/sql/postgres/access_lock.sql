-- One revocation at a time: two that each see the other's key as the one that remains would leave none.
-- Own file: SQLite has a single writer.
select pg_advisory_xact_lock(7316884022)
