-- No rows: SQLite has no server, and a connection is an open file. Own file: PostgreSQL counts them.
select 0 as open, 0 as allowed where false
