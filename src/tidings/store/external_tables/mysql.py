"""MySQL and MariaDB tables, through PyMySQL on a thread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from . import port

# OperationalErrors about the connection or the server; the others are about the statement.
_AWAY = frozenset({1040, 1053, 1158, 1159, 1160, 1161, 1205, 1213, 1290, 2003, 2006, 2013})
_SESSION = "set session sql_mode = concat(@@sql_mode, ',ANSI_QUOTES'), session time_zone = '+00:00'"


class _MysqlTable(port.SqlTable):
    def __init__(self, connection: Any, name: str, table: str) -> None:
        super().__init__(name, ".".join(map(port.quote_identifier, table.split("."))))
        self._connection = connection

    async def look(self, table: str) -> None:
        """Read its columns and its key."""
        schema, _, bare = table.rpartition(".")
        found = await self.read(
            "select column_name, column_key from information_schema.columns"
            " where table_schema = coalesce(%s, database()) and table_name = %s order by ordinal_position",
            schema or None,
            bare,
        )
        if not found:
            names = "select table_name from information_schema.tables where table_schema = database() order by 1"
            raise port.no_table(table, [row[0] for row in await self.read(names)])
        keys = [row[0] for row in found if row[1] == "PRI"]
        self.columns, self.primary = [row[0] for row in found], keys[0] if len(keys) == 1 else None

    def mark(self, number: int, column: str) -> str:
        return "%s"

    def condition(self, where: str) -> str:
        return where.replace("%", "%%")

    async def read(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        import pymysql

        def work() -> list[tuple[Any, ...]]:
            with self._connection.cursor() as cursor:
                cursor.execute(sql, values)
                return list(cursor.fetchall())

        try:
            return await asyncio.to_thread(work)
        except pymysql.MySQLError as error:
            raise port.query_rejected(error) from error

    async def write(self, statements: Sequence[tuple[str, Sequence[port.ColumnValue]]]) -> list[int]:
        import pymysql

        def work() -> list[int]:
            self._connection.begin()
            with self._connection.cursor() as cursor:
                found = [cursor.execute(sql, [_stored(value) for value in values]) for sql, values in statements]
            self._connection.commit()
            return found

        try:
            return await asyncio.to_thread(work)
        except (OSError, pymysql.InterfaceError) as error:
            raise port.ExternalTableUnavailable(str(error)) from error
        except pymysql.MySQLError as error:
            if error.args and error.args[0] in _AWAY:
                raise port.ExternalTableUnavailable(str(error)) from error
            await asyncio.to_thread(self._connection.rollback)
            raise port.query_rejected(error) from error


def _stored(value: port.ColumnValue) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value  # in UTC


@asynccontextmanager
async def open_table(url: str, table: str, writable: bool) -> AsyncIterator[port.ExternalTable]:
    """Connect and find the table."""
    try:
        import pymysql
        from pymysql.constants import CLIENT
    except ImportError as error:
        raise port.missing_driver("MySQL", "mysql") from error
    parts = urlsplit(url)

    def connect() -> Any:
        made = pymysql.connect(
            host=parts.hostname or "127.0.0.1",
            port=parts.port or 3306,
            user=unquote(parts.username or ""),
            password=unquote(parts.password or ""),
            database=unquote(parts.path.strip("/")) or None,
            unix_socket=parse_qs(parts.query).get("unix_socket", [None])[0],
            connect_timeout=10,
            read_timeout=port.UPDATE_TIMEOUT if writable else port.QUERY_TIMEOUT,
            write_timeout=port.UPDATE_TIMEOUT,
            autocommit=True,
            client_flag=CLIENT.FOUND_ROWS,  # a row that already has the values counts as found
            charset="utf8mb4",
            init_command=_SESSION,
        )
        if not writable:
            made.query("set session transaction read only")
        return made

    try:
        connection = await asyncio.to_thread(connect)
    except (OSError, pymysql.MySQLError, ValueError, RuntimeError) as error:
        raise port.unreachable(error) from error
    try:
        found = _MysqlTable(connection, port.location("mysql", url, table), table)
        await found.look(table)
        yield found
    finally:
        connection.close()
