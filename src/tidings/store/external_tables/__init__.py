"""Tables of other systems: read in pages, and updated by key for write-back.

files: CSV, NDJSON and JSON files.
mongo: MongoDB collections.
mysql: MySQL and MariaDB tables.
port: the protocol of a table, and the statements that SQL databases share.
postgres: PostgreSQL tables.
registry: opens a table by its URL.
sqlite: tables of SQLite files.
"""
