"""Schema migrations: applied once, in order, under a lock, and never edited afterwards (checksum).

A database that is newer than the code, or whose applied migrations differ from the files, is rejected.
"""

from __future__ import annotations

import hashlib
from importlib.resources import files
from typing import Any, NamedTuple

from ...model.errors import StoreUnusable

_LEDGER = """create table if not exists schema_migrations
  (number integer primary key, name text not null, checksum text not null)"""
_LOCK = 7_316_884_021
MOVED_NUMBER = 1_000_000  # marks a file that was moved; every release rejects it


class SchemaMigration(NamedTuple):
    number: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()[:32]


def load_migrations(dialect: str) -> list[SchemaMigration]:
    """Return all migrations of a dialect, in order."""
    found = [
        SchemaMigration(int(file.name[:4]), file.name.removesuffix(".sql"), file.read_text())
        for file in (files(__package__) / dialect).iterdir()
        if file.name.endswith(".sql")
    ]
    return sorted(found)


def pending_migrations(dialect: str, applied: dict[int, tuple[str, str]], *, upgrade: bool) -> list[SchemaMigration]:
    """Return the migrations to apply. Raises StoreUnusable for a database that this code cannot use. Pure."""
    known = {migration.number: migration for migration in load_migrations(dialect)}
    for number, (name, checksum) in applied.items():
        if number == MOVED_NUMBER:
            raise StoreUnusable(
                f"this database was {name}", remedy="use that database; tidings db move --undo reactivates this file"
            )
        if number not in known:
            raise StoreUnusable(
                f"the database is newer than this program (it has migration {name})",
                remedy="upgrade tidings, or restore the backup made before the upgrade",
            )
        if known[number].checksum != checksum:
            raise StoreUnusable(
                f"migration {name} differs from the one in this program",
                remedy="use the release that created this database, or restore a backup",
            )
    todo = [migration for number, migration in sorted(known.items()) if number not in applied]
    if todo and applied and not upgrade:
        raise StoreUnusable(
            f"the database is older than this program ({len(todo)} migrations to apply)",
            remedy="make a backup (tidings db backup), then run: tidings db upgrade",
        )
    return todo


async def migrate_postgres(connection: Any, schema: str, *, upgrade: bool, create: bool = True) -> None:
    """Create the schema in an empty PostgreSQL database; upgrade an old one only if asked."""
    quoted = '"' + schema.replace('"', '""') + '"'
    known = await connection.fetchval("select to_regclass($1)", f"{quoted}.schema_migrations") is not None
    if known and not pending_migrations("postgres", await _applied(connection), upgrade=upgrade):
        return  # the usual start: nothing to do, no lock taken
    if not known and not create:
        raise _empty()
    async with connection.transaction():
        await connection.execute("select pg_advisory_xact_lock($1)", _LOCK)
        if not await connection.fetchval("select 1 from pg_namespace where nspname = $1", schema):
            await connection.execute(f"create schema if not exists {quoted}")
        await connection.execute(_LEDGER)
        todo = pending_migrations("postgres", await _applied(connection), upgrade=upgrade)
        for migration in todo:
            await connection.execute(migration.sql)
            await connection.execute(
                "insert into schema_migrations (number, name, checksum) values ($1, $2, $3)",
                migration.number,
                migration.name,
                migration.checksum,
            )
        if todo:
            await connection.execute("select tidings_history_partitions(tidings_now(), 7)")


async def _applied(connection: Any) -> dict[int, tuple[str, str]]:
    rows = await connection.fetch("select number, name, checksum from schema_migrations")
    return {row["number"]: (row["name"], row["checksum"]) for row in rows}


def migrate_sqlite(connection: Any, *, upgrade: bool, create: bool = True) -> None:
    """Migrate a SQLite file, inside the caller's transaction."""
    if not create and not list(connection.execute("select 1 from sqlite_master where name = 'schema_migrations'")):
        raise _empty()
    for _ in connection.execute(_LEDGER):
        pass
    applied = {
        row[0]: (row[1], row[2]) for row in connection.execute("select number, name, checksum from schema_migrations")
    }
    for migration in pending_migrations("sqlite", applied, upgrade=upgrade):
        for _ in connection.execute(migration.sql):
            pass
        connection.execute(
            "insert into schema_migrations (number, name, checksum) values (?, ?, ?)",
            (migration.number, migration.name, migration.checksum),
        )


def _empty() -> StoreUnusable:
    return StoreUnusable("the database is empty", remedy="run: tidings db upgrade")
