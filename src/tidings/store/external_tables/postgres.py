"""PostgreSQL tables."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

from . import port


class _PostgresTable(port.SqlTable):
    def __init__(self, connection: Any, name: str, table: str) -> None:
        super().__init__(name, ".".join(map(port.quote_identifier, table.split("."))))
        self._connection = connection
        self._types: dict[str, str] = {}

    async def look(self, table: str) -> None:
        """Read its columns and its key."""
        found = await self._connection.fetch(
            "select attname::text, format_type(atttypid, atttypmod) from pg_attribute"
            " where attrelid = to_regclass($1) and attnum > 0 and not attisdropped order by attnum",
            self._table,
        )
        if not found:
            tables = await self._connection.fetch(
                "select schemaname || '.' || tablename from pg_tables"
                " where schemaname not in ('pg_catalog', 'information_schema') order by 1 limit 20"
            )
            raise port.no_table(table, [row[0] for row in tables])
        keys = await self._connection.fetch(
            "select a.attname::text from pg_index i join pg_attribute a on a.attrelid = i.indrelid"
            " and a.attnum = any(i.indkey) where i.indrelid = to_regclass($1) and i.indisprimary",
            self._table,
        )
        self._types = {row[0]: row[1] for row in found}
        self.columns, self.primary = list(self._types), keys[0][0] if len(keys) == 1 else None

    def mark(self, number: int, column: str) -> str:
        """A text that the server casts to the column's type, so that enums, numbers and times take it."""
        return f"cast(${number}::text as {self._types[column]})"

    async def read(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        import asyncpg

        try:
            return [tuple(row) for row in await self._connection.fetch(sql, *map(_text, values))]
        except asyncpg.PostgresError as error:
            raise port.query_rejected(error) from error

    async def write(self, statements: Sequence[tuple[str, Sequence[port.ColumnValue]]]) -> list[int]:
        import asyncpg

        away = (OSError, TimeoutError, asyncpg.InterfaceError, asyncpg.PostgresConnectionError,
                asyncpg.OperatorInterventionError, asyncpg.InsufficientResourcesError)  # fmt: skip
        try:
            async with self._connection.transaction():
                done = [await self._connection.execute(sql, *map(_text, values)) for sql, values in statements]
        except away as error:
            raise port.ExternalTableUnavailable(str(error) or type(error).__name__) from error
        except asyncpg.PostgresError as error:
            raise port.query_rejected(error) from error
        return [int(one.removeprefix("UPDATE ")) for one in done]


def _text(value: Any) -> str | None:
    if isinstance(value, datetime):
        return value.isoformat()
    return None if value is None else str(value)


@asynccontextmanager
async def open_table(url: str, table: str, writable: bool) -> AsyncIterator[port.ExternalTable]:
    """Connect and find the table."""
    try:
        import asyncpg
    except ImportError as error:
        raise port.missing_driver("PostgreSQL", "postgres") from error
    read_only = {} if writable else {"default_transaction_read_only": "on"}
    try:
        connection = await asyncpg.connect(
            url,
            timeout=10,
            command_timeout=port.UPDATE_TIMEOUT if writable else port.QUERY_TIMEOUT,
            statement_cache_size=0,  # works behind PgBouncer
            server_settings={**read_only, "application_name": "tidings import", "timezone": "UTC"},
        )
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError, ValueError) as error:
        raise port.unreachable(type(error).__name__ if isinstance(error, ValueError) else error) from error
    try:
        found = _PostgresTable(connection, port.location("postgresql", url, table), table)
        await found.look(table)
        yield found
    finally:
        await connection.close(timeout=port.UPDATE_TIMEOUT)
