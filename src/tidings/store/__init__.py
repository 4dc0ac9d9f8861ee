"""Persistence: one port, two databases (SQLite and PostgreSQL), one SQL file per statement.

port: the interface: enqueue, claim, start, settle; idempotency records.
postgres: the store on PostgreSQL.
postgres_server: server URL, session settings, safety checks and error translation.
postgres_enqueue: enqueues tasks with their rows and idempotency keys.
postgres_steps: runs named statements on a PostgreSQL connection.
postgres_notify: wake-up hints by LISTEN and NOTIFY.
sqlite: the store on one SQLite file.
sqlite_files: durable connections, work lock, wake-up socket and network file system check.
sqlite_claims: claims tasks on SQLite.
sqlite_steps: runs named statements on a SQLite connection.
group_commit: many writes, one fsync, on SQLite.
request_batches: shares one round trip among concurrent requests.
rate_limits: reserves send times within a rate limit (pure).
rate_limit_steps: the statements of rate limits.
task_rows: new tasks as rows.
statements: loads SQL files and binds their parameters.
migrations: schema migrations: numbered, applied once, checked by checksum.
encryption: encryption at rest of secrets (AES-256-GCM), key rotation.
write_state: whether the database currently accepts writes.
read_replica: sends heavy reads to a PostgreSQL standby.
sqlite_to_postgres: moves a SQLite database to PostgreSQL.
external_tables: reads tables of other systems, read only.
scratch_schemas: temporary PostgreSQL schemas for drills.
"""
