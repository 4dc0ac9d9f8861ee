"""Any SQL database that SQLAlchemy speaks to: a table is a record type, its key names the records.

Source: pages go on after the last key (never by counting rows), so what is read stays read however the table
changes. Target: an upsert where the database has one (PostgreSQL, SQLite, MySQL), else an update and, if
nothing was there, an insert, in one transaction: sending a record again changes nothing.

SQLAlchemy waits for its answers, so all of it runs in one thread of its own.
"""

from __future__ import annotations

import asyncio
import datetime
import decimal
import uuid
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from ...model.errors import Misconfigured
from ..words import Attribute, Failure, Fields, Limits, Page, Record, Spoiled, Strategy, Trouble, Written
from .options import Connector, count, text, texts

try:
    import sqlalchemy as sa
    from sqlalchemy.dialects import postgresql, sqlite
    from sqlalchemy.exc import (
        ArgumentError,
        DataError,
        DBAPIError,
        IntegrityError,
        NoSuchModuleError,
        NoSuchTableError,
        SQLAlchemyError,
        StatementError,
    )
except ImportError as missing:
    raise Misconfigured(
        "SQL databases need SQLAlchemy, which is not installed", remedy="pip install 'tidings[sql]'"
    ) from missing

BULK = 500

T = TypeVar("T")

_LARGEST = 1 << 63


@dataclass(frozen=True, slots=True)
class Settings:
    """`keys` names a column for a table whose own key is not the one to use; `tables` other names."""

    url: str
    keys: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, str] = field(default_factory=dict)
    page_size: int = 1_000


class Database:
    """One database: tables looked at once, work done in one thread."""

    def __init__(self, settings: Settings, *, is_written: bool) -> None:
        self._settings, self._is_written = settings, is_written
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sql")
        self._engine = _engine(settings.url)
        self._known: dict[str, tuple[sa.Table, sa.Column[Any]]] = {}

    async def do(self, work: Callable[[sa.Connection], T], *, writes: bool = False) -> T:
        """Work in a transaction of its own; a failed COMMIT may have happened."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._do, work, writes)

    def table(self, connection: sa.Connection, type_: str) -> tuple[sa.Table, sa.Column[Any]]:
        """The table of a record type, and its key."""
        if type_ not in self._known:
            name = self._settings.tables.get(type_, type_)
            schema, _, bare = name.rpartition(".")
            try:
                found = sa.Table(bare, sa.MetaData(), schema=schema or None, autoload_with=connection)
            except NoSuchTableError:
                raise Trouble(Failure.NOT_FOUND, f"there is no table {name!r}", field="tables") from None
            key = self._key(found, type_)
            if not _is_declared_unique(found, key):
                self._refuse_unclear(connection, found, key)
            self._known[type_] = (found, key)
        return self._known[type_]

    def _key(self, table: sa.Table, type_: str) -> sa.Column[Any]:
        named = self._settings.keys.get(type_)
        if named is not None and named in table.columns:
            return table.columns[named]
        primary = list(table.primary_key.columns)
        if named is not None or len(primary) != 1:
            said = f"no column {named!r}" if named is not None else "no key of one column"
            reason = f"{table.name} has {said}; name a unique column in `keys`"
            raise Trouble(Failure.VALIDATION, reason, field="keys")
        return primary[0]

    def _refuse_unclear(self, connection: sa.Connection, table: sa.Table, key: sa.Column[Any]) -> None:
        """Rows that share a key, or have none, could be lost between two pages or changed together."""
        if self._is_written:
            reason = f"{table.name}.{key.name} is not declared unique, so a row could be written twice"
            raise Trouble(Failure.VALIDATION, reason, field="keys")
        several = sa.select(key).group_by(key).having(sa.or_(sa.func.count() > 1, key.is_(None))).limit(1)
        found = connection.execute(several).first()
        if found is not None:
            said = "some rows have none" if found[0] is None else f"several rows have {str(found[0])[:40]!r}"
            raise Trouble(Failure.VALIDATION, f"{table.name}.{key.name} names no row: {said}", field="keys")

    async def close(self) -> None:
        """Let go of connections and of the thread."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._engine.dispose)
        self._thread.shutdown(wait=False)

    def _do(self, work: Callable[[sa.Connection], T], writes: bool) -> T:
        is_done = False
        try:
            with self._engine.begin() as connection:
                found = work(connection)
                is_done = True
            return found
        except SQLAlchemyError as error:
            raise trouble_of(error, sent=writes and is_done) from error


def _is_declared_unique(table: sa.Table, key: sa.Column[Any]) -> bool:
    if list(table.primary_key.columns) == [key]:
        return True
    declared = [list(one.columns) for one in table.constraints if isinstance(one, sa.UniqueConstraint)]
    declared += [list(index.columns) for index in table.indexes if index.unique]
    return not key.nullable and [key] in declared


def _engine(url: str) -> sa.Engine:
    try:
        return sa.create_engine(url, pool_size=1, max_overflow=0, pool_pre_ping=True, hide_parameters=True)
    except (ArgumentError, NoSuchModuleError, ImportError, TypeError) as error:
        kind = url.partition(":")[0][:40]
        raise Misconfigured(
            f"no database can be reached by {kind!r} ({type(error).__name__})",
            remedy="Write it as SQLAlchemy does, and install the driver",
            field="url",
        ) from error


def trouble_of(error: SQLAlchemyError, *, sent: bool) -> Trouble:
    """What an error of the database means. Its values are hidden, and of its words the first line is kept."""
    said = str(error.orig if isinstance(error, StatementError) and error.orig else error)
    reason = f"the database says: {(said.strip().splitlines() or [''])[0][:200]}"
    if sent:
        return Trouble(Failure.AMBIGUOUS, reason, sent=True)
    if isinstance(error, IntegrityError | DataError):
        return Trouble(Failure.VALIDATION, reason)
    low = said.lower()
    if any(word in low for word in ("authentication", "password", "access denied")):
        return Trouble(Failure.CREDENTIALS, "the database refuses the user or the password")
    if "permission denied" in low or "readonly" in low or "read-only" in low:
        return Trouble(Failure.PERMISSION, reason)
    if isinstance(error, DBAPIError):
        return Trouble(Failure.TEMPORARY, reason)
    return Trouble(Failure.VALIDATION, reason)


def _attributes(table: sa.Table, key: sa.Column[Any]) -> list[Attribute]:
    return [
        Attribute(
            column.name,
            _type(column),
            required=not column.nullable and column.default is None and column.server_default is None,
            unique=column is key or bool(column.unique),
        )
        for column in table.columns
    ]


def _type(column: sa.Column[Any]) -> str:
    for kind, name in (
        (sa.Boolean, "boolean"),
        (sa.Numeric, "number"),
        (sa.Integer, "number"),
        (sa.DateTime, "time"),
        (sa.Date, "date"),
        (sa.JSON, "json"),
    ):
        if isinstance(column.type, kind):
            return name
    return "text"


class SqlSource:
    """Reads tables in the order of their keys."""

    kind = "sql"
    limits = Limits(concurrency=1)

    def __init__(self, settings: Settings, _: Callable[[], int]) -> None:
        self._database, self._size = Database(settings, is_written=False), settings.page_size

    async def attributes(self, type_: str) -> Sequence[Attribute] | None:
        """The columns."""
        return await self._database.do(
            lambda connection: _attributes(*self._database.table(connection, type_))
        )

    async def count(self, type_: str) -> int | None:
        """As the database counts."""

        def work(connection: sa.Connection) -> int:
            table, _ = self._database.table(connection, type_)
            return connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()

        return await self._database.do(work)

    async def page(self, type_: str, cursor: str | None) -> Page:
        """The rows after the last key."""

        def work(connection: sa.Connection) -> Page:
            table, key = self._database.table(connection, type_)
            return _rows(connection, type_, table, key, after=cursor, size=self._size)

        return await self._database.do(work)

    async def close(self) -> None:
        """Let go of connections."""
        await self._database.close()


def _rows(
    connection: sa.Connection,
    type_: str,
    table: sa.Table,
    key: sa.Column[Any],
    *,
    after: str | None,
    size: int,
) -> Page:
    """The next rows in the order of their key."""
    wanted = sa.select(table).order_by(key).limit(size)
    if after is not None:
        wanted = wanted.where(key > typed(key, after))
    records: list[Record] = []
    spoiled: list[Spoiled] = []
    last: str | None = None
    for row in connection.execute(wanted).mappings():
        last = str(_plain(row[key]))
        fields = {str(column.name): _plain(row[column]) for column in table.columns}
        bad = next(
            (name for name, value in fields.items() if isinstance(value, str) and "\x00" in value), None
        )
        if bad is None:
            records.append(Record(type_, last, fields))
        else:
            spoiled.append(Spoiled(type_, last, f"{bad!r} has a null byte", bad))
    return Page(records, last if len(records) + len(spoiled) == size else None, spoiled)


def _plain(value: Any) -> Any:
    """A value as JSON has it: times in ISO 8601, exact numbers as texts, bytes in base64."""
    match value:
        case datetime.datetime() | datetime.date() | datetime.time():
            return value.isoformat()
        case decimal.Decimal() | uuid.UUID():
            return str(value)
        case datetime.timedelta():
            return value.total_seconds()
        case bytes() | bytearray() | memoryview():
            return b64encode(bytes(value)).decode()
        case int() if not -_LARGEST <= value < _LARGEST:
            return str(value)
    return value


def typed(column: sa.Column[Any], value: str) -> Any:
    """A key that was kept as a text, as its column has it."""
    try:
        kind = column.type.python_type
    except NotImplementedError:
        return value
    try:
        if issubclass(kind, datetime.datetime | datetime.date | datetime.time):
            return kind.fromisoformat(value)
        return kind(value) if kind in (int, float, decimal.Decimal, uuid.UUID) else value
    except (ValueError, ArithmeticError):
        raise Trouble(Failure.VALIDATION, f"{value[:40]!r} is no {column.name}", field=column.name) from None


class SqlTarget:
    """Writes rows by their key, many in one transaction."""

    kind = "sql"
    limits = Limits(concurrency=1, bulk=BULK)

    def __init__(self, settings: Settings, _: Callable[[], int]) -> None:
        self._database = Database(settings, is_written=True)
        self._size = settings.page_size

    def strategy(self, type_: str) -> Strategy:
        """By the key."""
        return Strategy.UPSERT

    async def attributes(self, type_: str) -> Sequence[Attribute] | None:
        """The columns."""
        return await self._database.do(
            lambda connection: _attributes(*self._database.table(connection, type_))
        )

    async def find(self, type_: str, key: str, fields: Fields) -> Sequence[Written]:
        """The row with this key."""

        def work(connection: sa.Connection) -> list[Written]:
            table, column = self._database.table(connection, type_)
            rows = connection.execute(sa.select(table).where(column == typed(column, key))).mappings()
            return [Written(key, {name: _plain(value) for name, value in row.items()}) for row in rows]

        return await self._database.do(work)

    async def write(self, type_: str, key: str, fields: Fields, known: str | None) -> Written:
        """One row in a transaction."""
        await self._database.do(lambda connection: self._put(connection, type_, key, fields), writes=True)
        return Written(key)

    async def write_many(
        self, type_: str, records: Sequence[tuple[str, Fields, str | None]]
    ) -> Sequence[Written | Trouble]:
        """Many rows in one transaction; one that is refused leaves the others."""

        def work(connection: sa.Connection) -> list[Written | Trouble]:
            return [self._kept(connection, type_, key, fields) for key, fields, _ in records]

        return await self._database.do(work, writes=True)

    async def erase(self, type_: str, id_: str) -> None:
        """Delete the row with this key."""

        def work(connection: sa.Connection) -> None:
            table, column = self._database.table(connection, type_)
            connection.execute(table.delete().where(column == typed(column, id_)))

        await self._database.do(work, writes=True)

    async def read_all(self, type_: str) -> AsyncIterator[tuple[str, Written]]:
        """All rows in the order of their keys."""
        cursor: str | None = None
        while True:
            page = await self._database.do(partial(self._page, type_, cursor))
            for record in page.records:
                yield record.id, Written(record.id, record.fields)
            cursor = page.cursor
            if cursor is None:
                return

    async def close(self) -> None:
        """Let go of connections."""
        await self._database.close()

    def _page(self, type_: str, after: str | None, connection: sa.Connection) -> Page:
        table, key = self._database.table(connection, type_)
        return _rows(connection, type_, table, key, after=after, size=self._size)

    def _kept(self, connection: sa.Connection, type_: str, key: str, fields: Fields) -> Written | Trouble:
        try:
            with connection.begin_nested():
                self._put(connection, type_, key, fields)
        except Trouble as trouble:
            return trouble
        except (IntegrityError, DataError, StatementError) as error:
            found = trouble_of(error, sent=False)
            if found.failure is not Failure.VALIDATION:
                raise
            return found
        return Written(key)

    def _put(self, connection: sa.Connection, type_: str, key: str, fields: Fields) -> None:
        table, column = self._database.table(connection, type_)
        unknown = next((name for name in fields if name not in table.columns), None)
        if unknown is not None:
            raise Trouble(Failure.VALIDATION, f"{table.name} has no column {unknown!r}", field=unknown)
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
    """A text where the column wants a time or a number; anything else the database judges itself."""
    is_text = isinstance(value, str) and not isinstance(column.type, sa.String)
    return typed(column, value) if is_text and value else value


def _upsert(
    dialect: str, table: sa.Table, key: sa.Column[Any], row: Mapping[str, Any], others: Mapping[str, Any]
) -> sa.Insert | None:
    """The database's own upsert, where it has one."""
    if dialect == "postgresql":
        return _on_conflict(postgresql.insert(table).values(row), key, others)
    if dialect == "sqlite":
        return _on_conflict(sqlite.insert(table).values(row), key, others)
    return None


def _on_conflict(
    statement: postgresql.Insert | sqlite.Insert, key: sa.Column[Any], others: Mapping[str, Any]
) -> sa.Insert:
    if not others:
        return statement.on_conflict_do_nothing(index_elements=[key])
    return statement.on_conflict_do_update(index_elements=[key], set_=dict(others))


CONNECTOR = Connector(
    settings=Settings,
    options={"url": text, "keys": texts, "tables": texts, "page_size": count(1, 10_000)},
    source=SqlSource,
    target=SqlTarget,
)
