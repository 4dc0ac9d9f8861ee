"""Moves a SQLite database to PostgreSQL in one transaction, compared row by row before the commit.

All or nothing, and never both: no process may have the file open, and the file is marked as moved before the
target commits. After a crash in between, every process rejects the file, the target is empty or complete, and
the same command resumes.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import asyncpg
import orjson

from ..model.errors import Conflict, StoreUnavailable, StoreUnusable
from .external_tables.port import quote_identifier
from .migrations import MOVED_NUMBER, pending_migrations
from .postgres import PostgresStore
from .postgres_server import split_url

OURS = "schema_migrations"  # each side has its own
PAGE = 2000
_DAY = 86_400_000_000

ProgressCallback = Callable[[str, int], None]  # a table, and the number of its copied rows


class CopiedTable(NamedTuple):
    name: str
    columns: tuple[str, ...]
    flags: frozenset[int]  # indexes of columns that are boolean in PostgreSQL, and 1 or 0 in SQLite


class TableChecksum(NamedTuple):
    """Count and checksum of a table's rows, independent of their order."""

    rows: int = 0
    digest: int = 0

    def plus(self, row: Sequence[Any]) -> TableChecksum:
        mark = hashlib.blake2b(orjson.dumps(list(row), default=_plain), digest_size=8).digest()
        return TableChecksum(self.rows + 1, (self.digest + int.from_bytes(mark)) & ((1 << 64) - 1))


async def move_database(
    path: Path, url: str, *, where: str, progress: ProgressCallback = lambda _table, _rows: None
) -> Mapping[str, int]:
    """Move all data. Return the number of rows by table. `where` is the target as it may be shown."""
    try:
        return await _move(path, url, where, progress)
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise StoreUnavailable(
            f"the connection to PostgreSQL was lost ({error})", remedy="run the same command again"
        ) from error


async def _move(path: Path, url: str, where: str, progress: ProgressCallback) -> Mapping[str, int]:
    await _bring_up(url)
    async with _source(path) as (source, is_marked), _target(url) as target:
        tables = await _tables(source, target)
        if await _is_filled(target, tables):
            if not is_marked:
                raise Conflict(
                    "the target is not empty", remedy="use an empty database, or another schema with ?schema=NAME"
                )
            return await _moved_before(source, target, tables)
        async with target.transaction():
            for table in tables:
                await _copy(source, target, table, progress)
            await _continue_ids(source, target)
            counted = await _compare(source, target, tables)
            _mark(source, where)
        return counted


async def _moved_before(
    source: apsw.Connection, target: asyncpg.Connection, tables: Sequence[CopiedTable]
) -> Mapping[str, int]:
    """Return the same result for a repeated call, unless the target has changed since."""
    try:
        async with target.transaction(readonly=True, isolation="repeatable_read"):
            return await _compare(source, target, tables)
    except StoreUnusable:
        raise Conflict(
            "this database was already moved, and the target has changed since", remedy="use the target"
        ) from None


def undo_move(path: Path) -> bool:
    """Unmark a file that was moved. Return False if it was not."""
    source = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        source.setbusytimeout(5000)
        gone = list(source.execute("delete from schema_migrations where number = ? returning number", (MOVED_NUMBER,)))
    finally:
        source.close()
    return bool(gone)


async def _bring_up(url: str) -> None:
    """Create the schema in the target and check its durability."""
    store = PostgresStore(url, connections=1)
    await store.open()
    await store.close()


@contextlib.asynccontextmanager
async def _source(path: Path) -> AsyncIterator[tuple[apsw.Connection, bool]]:
    """Open the file with an exclusive lock: no process works on it or writes to it meanwhile."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.setbusytimeout(500)
        try:
            list(connection.execute("pragma locking_mode = exclusive"))
            connection.execute("begin immediate")
        except apsw.BusyError:
            raise Conflict("a process has this database open", remedy="stop all Tidings processes, then move") from None
        yield connection, _check(connection)
        if connection.in_transaction:
            connection.execute("rollback")
    finally:
        connection.close()


def _check(connection: apsw.Connection) -> bool:
    """Whether the file is marked as moved. Raises StoreUnusable for another schema than this program's."""
    try:
        rows = list(connection.execute("select number, name, checksum from schema_migrations"))
    except apsw.SQLError:
        raise StoreUnusable("this is not a Tidings database", remedy="check --database") from None
    applied = {number: (name, checksum) for number, name, checksum in rows}
    is_marked = applied.pop(MOVED_NUMBER, None) is not None
    pending_migrations("sqlite", applied, upgrade=False)
    return is_marked


@contextlib.asynccontextmanager
async def _target(url: str) -> AsyncIterator[asyncpg.Connection]:
    dsn, schema = split_url(url)
    try:
        connection = await asyncpg.connect(dsn, timeout=10, server_settings={"search_path": quote_identifier(schema)})
    except (OSError, asyncpg.PostgresError, TimeoutError) as error:
        raise StoreUnavailable(
            f"PostgreSQL does not respond ({error})", remedy="check that the server is running"
        ) from error
    try:
        await connection.execute("select pg_advisory_lock($1)", MOVED_NUMBER)
        yield connection
    finally:
        await connection.close()


async def _tables(source: apsw.Connection, target: asyncpg.Connection) -> list[CopiedTable]:
    """Return every table with its columns. Raises if the two sides differ."""
    names = [
        name
        for (name,) in source.execute("select name from sqlite_schema where type = 'table' order by name")
        if name != OURS and not name.startswith("sqlite_")
    ]
    tables = []
    for name in names:
        columns = tuple(row[1] for row in source.execute(f"pragma table_info({quote_identifier(name)})"))
        kinds = {
            row["column_name"]: row["data_type"]
            for row in await target.fetch(
                "select column_name, data_type from information_schema.columns"
                " where table_schema = current_schema() and table_name = $1",
                name,
            )
        }
        if set(columns) != set(kinds):
            raise StoreUnusable(
                f"the table {name} differs between the two databases", remedy="use the same release for both"
            )
        flags = frozenset(place for place, column in enumerate(columns) if kinds[column] == "boolean")
        tables.append(CopiedTable(name, columns, flags))
    return tables


async def _is_filled(target: asyncpg.Connection, tables: Iterable[CopiedTable]) -> bool:
    for table in tables:
        if await target.fetchval(f"select exists (select 1 from {quote_identifier(table.name)})"):  # noqa: S608
            return True
    return False


async def _copy(
    source: apsw.Connection, target: asyncpg.Connection, table: CopiedTable, progress: ProgressCallback
) -> None:
    if table.name == "history":
        await _create_partitions(source, target)
    done, rows = 0, _rows(source, table)
    while page := list(islice(rows, PAGE)):
        try:
            await target.copy_records_to_table(table.name, records=page, columns=table.columns)
        except asyncpg.DataError as error:
            raise StoreUnusable(
                f"PostgreSQL rejected a row of {table.name}: {error}", remedy="nothing was changed; report this"
            ) from None
        done += len(page)
        progress(table.name, done)


async def _create_partitions(source: apsw.Connection, target: asyncpg.Connection) -> None:
    """Create a partition for each day of the history; otherwise old days could not be dropped."""
    first, last = next(iter(source.execute("select min(at), max(at) from history")))
    if first is not None:
        days = last // _DAY - first // _DAY
        await target.execute("select tidings_history_partitions($1, $2)", first, days)


async def _continue_ids(source: apsw.Connection, target: asyncpg.Connection) -> None:
    """Continue ids after the highest that was ever assigned, even if its row is gone."""
    given = dict(source.execute("select name, seq from sqlite_sequence"))
    if given.get("tasks"):
        await target.execute("select setval('task_ids', $1)", given.pop("tasks"))
    for row in await target.fetch(
        "select table_name, column_name from information_schema.columns"
        " where table_schema = current_schema() and is_identity = 'YES'"
    ):
        if last := given.get(row["table_name"]):
            await target.execute(
                "select setval(pg_get_serial_sequence($1, $2), $3)",
                quote_identifier(row["table_name"]), row["column_name"], last,
            )  # fmt: skip


async def _compare(
    source: apsw.Connection, target: asyncpg.Connection, tables: Iterable[CopiedTable]
) -> dict[str, int]:
    """Count and compare all rows of both sides. Raises on any difference, which rolls everything back."""
    counted = {}
    for table in tables:
        here = there = TableChecksum()
        for row in _rows(source, table):
            here = here.plus(row)
        columns = ", ".join(map(quote_identifier, table.columns))
        query = f"select {columns} from {quote_identifier(table.name)}"  # noqa: S608
        async for record in target.cursor(query, prefetch=PAGE):
            there = there.plus(record)
        if here != there:
            raise StoreUnusable(
                f"the table {table.name} differs after the copy ({here.rows:,} rows, then {there.rows:,})",
                remedy="nothing was changed; report this",
            )
        counted[table.name] = here.rows
    return counted


def _mark(source: apsw.Connection, where: str) -> None:
    """Mark the file as moved: from here on it is rejected, whether or not the target commits."""
    marked = (MOVED_NUMBER, f"moved to {where}", "moved")
    list(source.execute("insert or replace into schema_migrations (number, name, checksum) values (?, ?, ?)", marked))
    source.execute("commit")


def _rows(source: apsw.Connection, table: CopiedTable) -> Iterator[Sequence[Any]]:
    """Return rows with PostgreSQL's types."""
    columns = ", ".join(map(quote_identifier, table.columns))
    for row in source.execute(f"select {columns} from {quote_identifier(table.name)}"):  # noqa: S608
        if not table.flags:
            yield row
        else:
            yield tuple(
                bool(value) if place in table.flags and value is not None else value for place, value in enumerate(row)
            )


def _plain(value: object) -> str:
    """Encode values that JSON does not support."""
    return value.hex() if isinstance(value, bytes | memoryview) else str(value)
