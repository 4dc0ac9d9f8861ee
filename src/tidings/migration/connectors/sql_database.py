"""One SQL database: tables, keys, errors, values, and one thread for all work, since SQLAlchemy blocks."""

from __future__ import annotations

import asyncio
import datetime
import decimal
import uuid
from base64 import b64encode
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ...model.errors import Misconfigured
from .port import Attribute, ConnectorError, ErrorKind, Record, RecordPage, UnreadableRecord, invalid

try:
    import sqlalchemy as sa
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
    problem = "SQL databases need SQLAlchemy, which is not installed"
    raise Misconfigured(problem, remedy="pip install 'tidings[sql]'") from missing

T = TypeVar("T")
_LARGEST = 1 << 63


@dataclass(frozen=True, slots=True)
class SqlSettings:
    """`keys` names a key column other than the primary key, `tables` a table name that differs."""

    url: str
    keys: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, str] = field(default_factory=dict)
    page_size: int = 1_000


class SqlDatabase:
    """One database: tables are inspected once, work runs in one thread."""

    def __init__(self, settings: SqlSettings, *, is_written: bool) -> None:
        self._settings, self._is_written = settings, is_written
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sql")
        self._engine = _engine(settings.url)
        self._known: dict[str, tuple[sa.Table, sa.Column[Any]]] = {}

    async def do(self, work: Callable[[sa.Connection], T], *, writes: bool = False) -> T:
        """Run work in its own transaction; a failed COMMIT may have been applied."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._do, work, writes)

    def table(self, connection: sa.Connection, type_: str) -> tuple[sa.Table, sa.Column[Any]]:
        """Return the table of a record type and its key column."""
        if type_ not in self._known:
            name = self._settings.tables.get(type_, type_)
            schema, _, bare = name.rpartition(".")
            try:
                found = sa.Table(bare, sa.MetaData(), schema=schema or None, autoload_with=connection)
            except NoSuchTableError:
                raise ConnectorError(ErrorKind.NOT_FOUND, f"no table {name!r}", field="tables") from None
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
            lacks = f"no column {named!r}" if named is not None else "no single-column key"
            reason = f"{table.name} has {lacks}: name a unique column in `keys`"
            raise invalid(reason, "keys")
        return primary[0]

    def _refuse_unclear(self, connection: sa.Connection, table: sa.Table, key: sa.Column[Any]) -> None:
        """Reject a key that is not unique or has NULLs: rows could be skipped or updated together."""
        if self._is_written:
            reason = f"{table.name}.{key.name} is not declared unique, so a row could be written twice"
            raise invalid(reason, "keys")
        several = sa.select(key).group_by(key).having(sa.or_(sa.func.count() > 1, key.is_(None))).limit(1)
        found = connection.execute(several).first()
        if found is not None:
            rows = "some rows have none" if found[0] is None else f"several rows have {str(found[0])[:40]!r}"
            raise invalid(f"{table.name}.{key.name} is not unique: {rows}", "keys")

    async def close(self) -> None:
        """Close all connections and the thread."""
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
            raise connector_error(error, sent=writes and is_done) from error


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
        problem = f"unsupported database URL {kind!r} ({type(error).__name__})"
        remedy = "Use a SQLAlchemy URL, and install the driver"
        raise Misconfigured(problem, remedy=remedy, field="url") from error


def _first(error: SQLAlchemyError) -> SQLAlchemyError:
    """Return the original error: a full disk rolls back everything, and then the savepoint is missing too."""
    found: BaseException | None = error
    while found is not None and (not isinstance(found, SQLAlchemyError) or "savepoint" in str(found).lower()):
        found = found.__context__
    return error if found is None else found


def connector_error(error: SQLAlchemyError, *, sent: bool) -> ConnectorError:
    """Convert a database error. Parameter values are hidden; of the message the first line is kept."""
    error = _first(error)
    message = str(error.orig if isinstance(error, StatementError) and error.orig else error)
    reason = f"the database reports: {(message.strip().splitlines() or [''])[0][:200]}"
    if sent:
        return ConnectorError(ErrorKind.AMBIGUOUS, reason, sent=True)
    if isinstance(error, IntegrityError | DataError):
        return invalid(reason)
    low = message.lower()
    if any(word in low for word in ("authentication", "password", "access denied")):
        return ConnectorError(ErrorKind.CREDENTIALS, "the database rejects the user or password")
    if "permission denied" in low or "readonly" in low or "read-only" in low:
        return ConnectorError(ErrorKind.PERMISSION, reason)
    if isinstance(error, DBAPIError):
        return ConnectorError(ErrorKind.TEMPORARY, reason)
    return invalid(reason)


def attributes_of(table: sa.Table, key: sa.Column[Any]) -> list[Attribute]:
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


def rows_after(
    connection: sa.Connection, type_: str, table: sa.Table, key: sa.Column[Any], *, after: str | None, size: int
) -> RecordPage:
    """Return the next rows in the order of their key."""
    wanted = sa.select(table).order_by(key).limit(size)
    if after is not None:
        wanted = wanted.where(key > typed(key, after))
    records: list[Record] = []
    unreadable: list[UnreadableRecord] = []
    last: str | None = None
    for row in connection.execute(wanted).mappings():
        last = str(plain(row[key]))
        fields = {str(column.name): plain(row[column]) for column in table.columns}
        bad = next((name for name, one in fields.items() if isinstance(one, str) and "\x00" in one), None)
        if bad is None:
            records.append(Record(type_, last, fields))
        else:
            unreadable.append(UnreadableRecord(type_, last, f"{bad!r} has a null byte", bad))
    return RecordPage(records, last if len(records) + len(unreadable) == size else None, unreadable)


def plain(value: Any) -> Any:
    """Convert a value to JSON: times to ISO 8601, exact numbers to texts, bytes to base64."""
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
    """Convert a key stored as text to the type of its column."""
    try:
        kind = column.type.python_type
    except NotImplementedError:
        return value
    try:
        if issubclass(kind, datetime.datetime | datetime.date | datetime.time):
            return kind.fromisoformat(value)
        return kind(value) if kind in (int, float, decimal.Decimal, uuid.UUID) else value
    except (ValueError, ArithmeticError):
        raise invalid(f"{value[:40]!r} is not a valid {column.name}", column.name) from None
