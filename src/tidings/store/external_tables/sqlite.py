"""Tables of SQLite files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw

from ...model.errors import Invalid
from . import port

_NOT_NOW = (apsw.BusyError, apsw.LockedError, apsw.CantOpenError, apsw.IOError, apsw.FullError, apsw.ReadOnlyError)


class _SqliteTable(port.SqlTable):
    def __init__(self, connection: apsw.Connection, name: str, table: str) -> None:
        super().__init__(name, port.quote_identifier(table))
        self._connection = connection
        found = self._run(f"pragma table_info({self._table})")
        if not found:
            tables = self._run("select name from sqlite_schema where type in ('table', 'view') order by name")
            raise port.no_table(table, [str(row[0]) for row in tables])
        keys = [str(row[1]) for row in found if row[5]]
        self.columns = [str(row[1]) for row in found]
        is_table = self._run("select 1 from sqlite_schema where type = 'table' and name = ?1", (table,))
        unnamed = "rowid" if is_table and not keys else None  # every table without a key has this one
        self.primary = keys[0] if len(keys) == 1 else unnamed

    def mark(self, number: int, column: str) -> str:
        return f"?{number}"

    async def read(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._run(sql, values)

    async def write(self, statements: Sequence[tuple[str, Sequence[port.ColumnValue]]]) -> list[int]:
        return await asyncio.to_thread(self._write, statements)

    def _write(self, statements: Sequence[tuple[str, Sequence[port.ColumnValue]]]) -> list[int]:
        found = []
        try:
            with self._connection:
                for sql, values in statements:
                    self._connection.execute(sql, [_stored(value) for value in values])
                    found.append(self._connection.changes())
        except _NOT_NOW as error:
            raise port.ExternalTableUnavailable(str(error)) from error
        except apsw.Error as error:
            raise port.query_rejected(error) from error
        return found

    def _run(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        try:
            return list(self._connection.execute(sql, values))
        except apsw.Error as error:
            raise port.query_rejected(error) from error


def _stored(value: port.ColumnValue) -> Any:
    return value.isoformat(timespec="milliseconds") if isinstance(value, datetime) else value


@asynccontextmanager
async def open_table(url: str, table: str, writable: bool) -> AsyncIterator[port.ExternalTable]:
    """Open the file and find the table."""
    path = Path(url.removeprefix("sqlite:///")).resolve()
    if not url.startswith("sqlite:///") or not path.is_file():
        raise Invalid(f"there is no file {path}", field="from", remedy="use sqlite:///path/to/file")
    try:
        mode = apsw.SQLITE_OPEN_READWRITE if writable else apsw.SQLITE_OPEN_READONLY
        connection = apsw.Connection(str(path), flags=mode)
        connection.setbusytimeout((port.UPDATE_TIMEOUT if writable else port.QUERY_TIMEOUT) * 1000)
        if not writable:
            list(connection.execute("pragma query_only = on"))
        list(connection.execute("select count(*) from sqlite_schema"))
    except apsw.Error as error:
        raise Invalid(f"{path} cannot be read as SQLite ({error})", field="from", remedy="check the file") from error
    try:
        yield _SqliteTable(connection, f"sqlite:///{path}#{table}", table)
    finally:
        connection.close()
