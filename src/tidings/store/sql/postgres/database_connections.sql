-- Open connections to this database, and how many the server allows. Own file: SQLite has no server.
select count(*) as open, current_setting('max_connections')::int as allowed
from pg_stat_activity where datname = current_database()
