"""Any SQL database that SQLAlchemy supports: a table is a record type, its key identifies the records.

Source: keyset pagination (after the last key), so concurrent changes to the table skip no rows. Target: a
native upsert on PostgreSQL and SQLite; elsewhere SELECT FOR UPDATE, then UPDATE or INSERT in one transaction.
Both are idempotent.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, ClassVar

from .options import Connector, ConnectorReach, count, text, text_table
from .port import (
    Attribute,
    ConnectorError,
    ErrorKind,
    Fields,
    RecordPage,
    SystemLimits,
    TargetRecord,
    WriteStrategy,
    all_pages,
    invalid,
)
from .sql_database import SqlDatabase, SqlSettings, attributes_of, connector_error, plain, rows_after, typed

# isort: split
# The module above has reported a missing SQLAlchemy.
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DataError, IntegrityError, StatementError

BULK = 500

_INSERTS: Mapping[str, Callable[[sa.Table], postgresql.Insert | sqlite.Insert]] = {
    "postgresql": postgresql.insert,
    "sqlite": sqlite.insert,
}


class _SqlConnector:
    kind = "sql"
    is_written: ClassVar[bool]

    def __init__(self, settings: SqlSettings, _: Callable[[], int]) -> None:
        self._database, self._size = SqlDatabase(settings, is_written=self.is_written), settings.page_size

    async def attributes(self, type_: str) -> Sequence[Attribute] | None:
        return await self._database.do(lambda connection: attributes_of(*self._database.table(connection, type_)))

    async def close(self) -> None:
        await self._database.close()

    async def page(self, type_: str, cursor: str | None) -> RecordPage:
        def work(connection: sa.Connection) -> RecordPage:
            table, key = self._database.table(connection, type_)
            return rows_after(connection, type_, table, key, after=cursor, size=self._size)

        return await self._database.do(work)


class SqlSource(_SqlConnector):
    """Reads tables in the order of their keys."""

    limits = SystemLimits(concurrency=1)
    is_written = False

    async def count(self, type_: str) -> int | None:
        def work(connection: sa.Connection) -> int:
            table, _ = self._database.table(connection, type_)
            return connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()

        return await self._database.do(work)


class SqlTarget(_SqlConnector):
    """Writes rows by key, many in one transaction."""

    limits = SystemLimits(concurrency=1, bulk=BULK)
    is_written = True

    def strategy(self, type_: str) -> WriteStrategy:
        return WriteStrategy.UPSERT

    async def find(self, type_: str, key: str, fields: Fields) -> Sequence[TargetRecord]:
        def work(connection: sa.Connection) -> list[TargetRecord]:
            table, column = self._database.table(connection, type_)
            rows = connection.execute(sa.select(table).where(column == typed(column, key))).mappings()
            return [TargetRecord(key, {name: plain(value) for name, value in row.items()}) for row in rows]

        return await self._database.do(work)

    async def write(self, type_: str, key: str, fields: Fields, known: str | None) -> TargetRecord:
        await self._database.do(lambda connection: self._put(connection, type_, key, fields), writes=True)
        return TargetRecord(key)

    async def write_many(
        self, type_: str, records: Sequence[tuple[str, Fields, str | None]]
    ) -> Sequence[TargetRecord | ConnectorError]:
        """Write many rows in one transaction; an invalid row does not affect the others."""

        def work(connection: sa.Connection) -> list[TargetRecord | ConnectorError]:
            return [self._kept(connection, type_, key, fields) for key, fields, _ in records]

        return await self._database.do(work, writes=True)

    async def erase(self, type_: str, id_: str) -> None:
        def work(connection: sa.Connection) -> None:
            table, column = self._database.table(connection, type_)
            connection.execute(table.delete().where(column == typed(column, id_)))

        await self._database.do(work, writes=True)

    async def read_all(self, type_: str) -> AsyncIterator[tuple[str, TargetRecord]]:
        async for page in all_pages(self, type_):
            for record in page.records:
                yield record.id, TargetRecord(record.id, record.fields)

    def _kept(self, connection: sa.Connection, type_: str, key: str, fields: Fields) -> TargetRecord | ConnectorError:
        try:
            with connection.begin_nested():
                self._put(connection, type_, key, fields)
        except ConnectorError as error:
            return error
        except (IntegrityError, DataError, StatementError) as error:
            found = connector_error(error, sent=False)
            if found.failure is not ErrorKind.VALIDATION:
                raise
            return found
        return TargetRecord(key)

    def _put(self, connection: sa.Connection, type_: str, key: str, fields: Fields) -> None:
        table, column = self._database.table(connection, type_)
        unknown = next((name for name in fields if name not in table.columns), None)
        if unknown is not None:
            raise invalid(f"{table.name} has no column {unknown!r}", unknown)
        wanted = typed(column, key)
        values = {name: _typed_value(table.columns[name], value) for name, value in fields.items()}
        others = {name: value for name, value in values.items() if name != column.name}
        row = {**others, column.name: wanted}
        statement = _upsert(connection.dialect.name, table, column, row, others)
        if statement is not None:
            connection.execute(statement)
            return
        there = sa.select(column).where(column == wanted).with_for_update()
        if connection.execute(there).first() is None:
            connection.execute(table.insert().values(row))
        elif others:
            connection.execute(table.update().where(column == wanted).values(others))


def _typed_value(column: sa.Column[Any], value: Any) -> Any:
    """Convert a text for a column of times or numbers; the database checks everything else."""
    is_text = isinstance(value, str) and not isinstance(column.type, sa.String)
    return typed(column, value) if is_text and value else value


def _upsert(
    dialect: str, table: sa.Table, key: sa.Column[Any], row: Mapping[str, Any], others: Mapping[str, Any]
) -> sa.Insert | None:
    """Return the database's native upsert; None if it has none."""
    insert = _INSERTS.get(dialect)
    if insert is None:
        return None
    statement = insert(table).values(row)
    if not others:
        return statement.on_conflict_do_nothing(index_elements=[key])
    return statement.on_conflict_do_update(index_elements=[key], set_=dict(others))


CONNECTOR = Connector(
    settings=SqlSettings,
    options={"url": text, "keys": text_table, "tables": text_table, "page_size": count(1, 10_000)},
    source=SqlSource,
    target=SqlTarget,
    reach=ConnectorReach.DATABASE,
)
