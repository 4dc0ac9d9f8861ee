"""Reads tables of other systems: read only, in pages ordered by key, without long locks.

The only place that composes statements for a foreign schema. Names are quoted; the condition is the
operator's own SQL, run on a connection that cannot write.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

import apsw

from ..model.errors import Invalid

QUERY_TIMEOUT = 60  # seconds for one page
_KINDS = "sqlite:///path/to/file or postgresql://user@host/name"


class ExternalTable(Protocol):
    """One table of another database."""

    name: str  # its location, without user and password
    columns: Sequence[str]
    primary: str | None  # its key, if that is one column

    async def rows(self, columns: Sequence[str], where: str | None, after: Any, limit: int) -> list[Any]:
        """Return a page of rows as tuples, ordered by the first column (the key), after `after`."""

    async def unclear(self, key: str, where: str | None) -> str | None:
        """Return why this column is not a unique key; None if it is."""


@contextlib.asynccontextmanager
async def open_table(url: str, table: str) -> AsyncIterator[ExternalTable]:
    """Connect read-only and find the table. Raises Invalid."""
    scheme = url.partition("://")[0]
    if scheme == "sqlite":
        with _sqlite(url, table) as opened:
            yield opened
    elif scheme in ("postgresql", "postgres"):
        async with _postgres(url, table) as found:
            yield found
    else:
        raise Invalid(f"unsupported database {scheme[:40]!r}", field="from", remedy=f"use {_KINDS}")


def quote_identifier(name: str) -> str:
    """Quote a name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def page_query(table: str, columns: Sequence[str], where: str | None, *, after_mark: str | None, limit: int) -> str:
    """Return the query of one page; `after_mark` is the placeholder of the key after which it starts."""
    key = quote_identifier(columns[0])
    conditions = [f"({where}\n)"] if where else []
    conditions += [f"{key} > {after_mark}"] if after_mark else []
    matching = f" where {' and '.join(conditions)}" if conditions else ""
    names = ", ".join(map(quote_identifier, columns))
    return f"select {names} from {table}{matching} order by {key} limit {limit}"  # noqa: S608


def _unclear_of(table: str, key: str, where: str | None) -> str:
    name = quote_identifier(key)
    matching = f" where ({where}\n)" if where else ""
    return f"select {name} from {table}{matching} group by {name} having count(*) > 1 or {name} is null limit 1"  # noqa: S608


def _unclear(key: str, found: Sequence[Sequence[Any]]) -> str | None:
    if not found:
        return None
    value = found[0][0]
    return f"{key} is empty in some rows" if value is None else f"{key} is {str(value)[:60]!r} in several rows"


def _no_table(table: str, known: Sequence[str]) -> Invalid:
    names = ", ".join(known[:20]) or "none"
    return Invalid(f"unknown table {table[:60]!r}", field="table", remedy=f"existing tables: {names}")


def _refused(error: Exception) -> Invalid:
    text = " ".join(str(error).split())[:200]
    return Invalid(f"the source database rejected the query ({text})", field="where", remedy="fix --where")


# -- SQLite


class _SqliteTable:
    def __init__(self, connection: apsw.Connection, name: str, table: str) -> None:
        self._connection = connection
        self._table = quote_identifier(table)
        self.name = name
        found = self._run(f"pragma table_info({self._table})")
        if not found:
            tables = self._run("select name from sqlite_schema where type in ('table', 'view') order by name")
            raise _no_table(table, [str(row[0]) for row in tables])
        keys = [str(row[1]) for row in found if row[5]]
        self.columns: Sequence[str] = [str(row[1]) for row in found]
        is_table = self._run("select 1 from sqlite_schema where type = 'table' and name = ?1", (table,))
        unnamed = "rowid" if is_table and not keys else None  # every table without a key has this one
        self.primary: str | None = keys[0] if len(keys) == 1 else unnamed

    async def rows(self, columns: Sequence[str], where: str | None, after: Any, limit: int) -> list[Any]:
        """Return a page of rows."""
        sql = page_query(self._table, columns, where, after_mark=None if after is None else "?1", limit=limit)
        return self._run(sql, () if after is None else (after,))

    async def unclear(self, key: str, where: str | None) -> str | None:
        """Return why this column is not a unique key."""
        return _unclear(key, self._run(_unclear_of(self._table, key, where)))

    def _run(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        try:
            return list(self._connection.execute(sql, values))
        except apsw.Error as error:
            raise _refused(error) from error


@contextlib.contextmanager
def _sqlite(url: str, table: str) -> Iterator[ExternalTable]:
    path = Path(url.removeprefix("sqlite:///")).resolve()
    if not url.startswith("sqlite:///") or not path.is_file():
        raise Invalid(f"there is no file {path}", field="from", remedy=f"use {_KINDS}")
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        connection.setbusytimeout(QUERY_TIMEOUT * 1000)
        list(connection.execute("pragma query_only = on"))
        list(connection.execute("select count(*) from sqlite_schema"))
    except apsw.Error as error:
        raise Invalid(f"{path} cannot be read as SQLite ({error})", field="from", remedy="check the file") from error
    try:
        yield _SqliteTable(connection, f"sqlite:///{path}#{table}", table)
    finally:
        connection.close()


# -- PostgreSQL


class _PostgresTable:
    def __init__(self, connection: Any, name: str, table: str) -> None:
        self._connection = connection
        self._table = table  # quoted
        self.name = name
        self.columns: Sequence[str] = ()
        self.primary: str | None = None

    async def look(self) -> None:
        """Read its columns and its key."""
        found = await self._connection.fetch(
            "select attname::text from pg_attribute where attrelid = to_regclass($1) and attnum > 0"
            " and not attisdropped order by attnum",
            self._table,
        )
        keys = await self._connection.fetch(
            "select a.attname::text from pg_index i join pg_attribute a on a.attrelid = i.indrelid"
            " and a.attnum = any(i.indkey) where i.indrelid = to_regclass($1) and i.indisprimary",
            self._table,
        )
        self.columns = [row[0] for row in found]
        self.primary = keys[0][0] if len(keys) == 1 else None

    async def rows(self, columns: Sequence[str], where: str | None, after: Any, limit: int) -> list[Any]:
        """Return a page of rows."""
        sql = page_query(self._table, columns, where, after_mark=None if after is None else "$1", limit=limit)
        return await self._run(sql, *([] if after is None else [after]))

    async def unclear(self, key: str, where: str | None) -> str | None:
        """Return why this column is not a unique key."""
        return _unclear(key, await self._run(_unclear_of(self._table, key, where)))

    async def _run(self, sql: str, *values: Any) -> list[Any]:
        import asyncpg

        try:
            return [tuple(row) for row in await self._connection.fetch(sql, *values)]
        except asyncpg.PostgresError as error:
            raise _refused(error) from error


@contextlib.asynccontextmanager
async def _postgres(url: str, table: str) -> AsyncIterator[ExternalTable]:
    try:
        import asyncpg
    except ImportError as error:
        raise Invalid(
            "the PostgreSQL driver is not installed", field="from", remedy="pip install 'tidings[postgres]'"
        ) from error
    try:
        connection = await asyncpg.connect(
            url,
            timeout=10,
            command_timeout=QUERY_TIMEOUT,
            server_settings={"default_transaction_read_only": "on", "application_name": "tidings import"},
        )
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, ValueError) as error:
        text = type(error).__name__ if isinstance(error, ValueError) else str(error)
        raise Invalid(
            f"the source database cannot be reached ({text[:200]})", field="from", remedy="check the address"
        ) from error
    try:
        found = _PostgresTable(connection, _place(url, table), ".".join(map(quote_identifier, table.split("."))))
        await found.look()
        if not found.columns:
            tables = await connection.fetch(
                "select schemaname || '.' || tablename from pg_tables"
                " where schemaname not in ('pg_catalog', 'information_schema') order by 1 limit 20"
            )
            raise _no_table(table, [row[0] for row in tables])
        yield found
    finally:
        await connection.close()


def _place(url: str, table: str) -> str:
    """Return the location of a table, without user, password and options."""
    parts: Any = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    return f"postgresql://{parts.hostname or ''}{port}{unquote(parts.path)}#{table}"
