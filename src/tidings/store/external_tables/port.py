"""The protocol of another system's table, its errors, and what SQL databases share.

The only place that composes statements for a foreign schema. Names are quoted; the condition is the
operator's own SQL. Tables are opened read-only unless a write-back updates them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from ...model.errors import Invalid

QUERY_TIMEOUT = 60  # seconds for one page
UPDATE_TIMEOUT = 10  # seconds for one batch of updates

ColumnValue = str | int | datetime | None
RowUpdate = tuple[str, Mapping[str, ColumnValue]]  # the key as text, and the new values
RowPages = AsyncIterator[list[tuple[Any, ...]]]


class ExternalTable(Protocol):
    """One table, collection or file of another system."""

    name: str  # its location, without user and password
    columns: Sequence[str]
    primary: str | None  # its key, if that is one column

    def pages(self, columns: Sequence[str], where: str | None, size: int) -> RowPages:
        """Yield all rows in pages; the first column is the key."""

    async def unclear(self, key: str, where: str | None) -> str | None:
        """Return why this column is not a unique key; None if it is."""

    async def update(self, key: str, changes: Sequence[RowUpdate]) -> set[str]:
        """Set columns by key; return the keys that exist. Raises Invalid or ExternalTableUnavailable."""


class ExternalTableUnavailable(Exception):
    """The other database does not answer; an update in progress may have been applied."""


def quote_identifier(name: str) -> str:
    """Quote a name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


class SqlTable(ABC):
    """A table of an SQL database; subclasses run the statements."""

    def __init__(self, name: str, table: str) -> None:
        self.name = name
        self.columns: Sequence[str] = ()
        self.primary: str | None = None
        self._table = table  # quoted

    @abstractmethod
    def mark(self, number: int, column: str) -> str:
        """Return the placeholder of a parameter."""

    def condition(self, where: str) -> str:
        """Return the operator's condition as the driver expects it."""
        return where

    @abstractmethod
    async def read(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a query."""

    @abstractmethod
    async def write(self, statements: Sequence[tuple[str, Sequence[ColumnValue]]]) -> list[int]:
        """Run updates in one transaction; return how many rows each found."""

    def pages(self, columns: Sequence[str], where: str | None, size: int) -> RowPages:
        """Yield all rows in the order of their key."""
        names, key = ", ".join(map(quote_identifier, columns)), quote_identifier(columns[0])

        async def page(after: Any) -> list[tuple[Any, ...]]:
            conditions = [f"({self.condition(where)}\n)"] if where else []
            conditions += [] if after is None else [f"{key} > {self.mark(1, columns[0])}"]
            matching = f" where {' and '.join(conditions)}" if conditions else ""
            sql = f"select {names} from {self._table}{matching} order by {key} limit {size}"  # noqa: S608
            return await self.read(sql, *([] if after is None else [after]))

        return keyset_pages(page, size)

    async def unclear(self, key: str, where: str | None) -> str | None:
        """Return why this column is not a unique key."""
        name, matching = quote_identifier(key), f" where ({self.condition(where)}\n)" if where else ""
        sql = (
            f"select {name} from {self._table}{matching} group by {name} having count(*) > 1 or {name} is null limit 1"  # noqa: S608
        )
        return unclear_key(key, *(row[0] for row in await self.read(sql)))

    async def update(self, key: str, changes: Sequence[RowUpdate]) -> set[str]:
        """Update rows by key in one transaction."""
        statements: list[tuple[str, Sequence[ColumnValue]]] = []
        for value, fields in changes:
            sets = ", ".join(f"{quote_identifier(name)} = {self.mark(at, name)}" for at, name in enumerate(fields, 1))
            match = f"{quote_identifier(key)} = {self.mark(len(fields) + 1, key)}"
            statements.append((f"update {self._table} set {sets} where {match}", [*fields.values(), value]))  # noqa: S608
        found = await self.write(statements)
        return {value for (value, _), count in zip(changes, found, strict=True) if count}


async def keyset_pages(read: Callable[[Any], Awaitable[list[tuple[Any, ...]]]], size: int) -> RowPages:
    """Yield pages ordered by key; `read` returns the page after a key. No transaction stays open in between."""
    after: Any = None
    while rows := await read(after):
        yield rows
        if len(rows) < size:
            return
        after = rows[-1][0]


async def find_unclear(key: str, pages: RowPages) -> str | None:
    """Read all keys to find out why this column is not a unique key."""
    seen: set[str] = set()
    async for page in pages:
        for (value,) in page:
            if value in (None, "") or str(value) in seen:
                return unclear_key(key, value or None)
            seen.add(str(value))
    return None


def unclear_key(key: str, *found: object) -> str | None:
    """Describe a key value that is empty or not unique."""
    if not found:
        return None
    return f"{key} is empty in some rows" if found[0] is None else f"{key} is {str(found[0])[:60]!r} in several rows"


def location(scheme: str, url: str, table: str) -> str:
    """Return the location of a table, without user, password and options."""
    parts: Any = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    return f"{scheme}://{parts.hostname or ''}{port}{unquote(parts.path)}#{table}"


def no_table(table: str, known: Sequence[str]) -> Invalid:
    """The error for an unknown table."""
    names = ", ".join(known[:20]) or "none"
    return Invalid(f"unknown table {table[:60]!r}", field="table", remedy=f"existing tables: {names}")


def query_rejected(error: Exception) -> Invalid:
    """The error for a statement that the other database rejects."""
    text = " ".join(str(error).split())[:200]
    return Invalid(f"the source database rejected the query ({text})", field="where", remedy="fix --where")


def unreachable(error: object) -> Invalid:
    """The error for a database that cannot be reached."""
    text = " ".join(str(error).split())[:200]
    return Invalid(f"the source database cannot be reached ({text})", field="from", remedy="check the address")


def missing_driver(name: str, extra: str) -> Invalid:
    """The error for a driver that is not installed."""
    return Invalid(f"the {name} driver is not installed", field="from", remedy=f"pip install 'tidings[{extra}]'")
