"""The engine's own books, read from outside while its processes live and die."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Protocol

from .checker import EngineRecord

_PAGE = 5000

Row = dict[str, Any]


class StatementReader(Protocol):
    """What answers the named questions: a store, or whatever reads the database of a test."""

    async def read(self, name: str, **params: Any) -> list[Row]: ...


async def _pages(database: StatementReader) -> AsyncIterator[Row]:
    after = 0
    while rows := await database.read("drill_books", after=after, limit=_PAGE):
        for row in rows:
            yield row
        after = rows[-1]["id"]


async def read_engine_records(database: StatementReader) -> dict[str, EngineRecord]:
    """What the engine says about every message."""
    return {
        row["recipient"]: EngineRecord(
            row["state"],
            bool(row["unknown"]),
            row["crashes"],
            row["message"],
            None if row["settled_at"] is None else row["settled_at"] / 1e6,
        )
        async for row in _pages(database)
    }


async def in_flight_messages(database: StatementReader, pid: int) -> dict[str, bool]:
    """What a process has at work, and whether its start is written down."""
    rows = await database.read("drill_held")
    return {row["recipient"]: bool(row["begun"]) for row in rows if row["node"].endswith(f":{pid}")}


async def count_unfinished(database: StatementReader) -> int:
    """How many messages wait or are at work."""
    return int((await database.read("drill_open"))[0]["n"])


async def settle_times(database: StatementReader) -> dict[str, float]:
    """When each message was last moved on from being at work, in seconds since 1970."""
    said = await read_engine_records(database)
    return {ref: book.settled_at for ref, book in said.items() if book.settled_at is not None}
