-- One revocation at a time. Own file: SQLite has a single writer, so there is nothing to lock.
select 1
