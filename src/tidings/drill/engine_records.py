"""Reads the engine's own records of the messages while its processes run and die."""

from __future__ import annotations

from typing import Any, Protocol

from .checker import EngineRecord

_PAGE = 5000

Row = dict[str, Any]


class StatementReader(Protocol):
    """Runs named statements: a store, or a test's database reader."""

    async def read(self, name: str, **params: Any) -> list[Row]: ...


async def read_engine_records(database: StatementReader) -> dict[str, EngineRecord]:
    """Return the engine's record of every message."""
    records: dict[str, EngineRecord] = {}
    after = 0
    while rows := await database.read("drill_books", after=after, limit=_PAGE):
        for row in rows:
            settled_at = None if row["settled_at"] is None else row["settled_at"] / 1e6
            records[row["recipient"]] = EngineRecord(
                row["state"], bool(row["unknown"]), row["crashes"], row["message"], settled_at
            )
        after = rows[-1]["id"]
    return records


async def in_flight_messages(database: StatementReader, pid: int) -> dict[str, bool]:
    """Return the messages that a process has in flight, and whether each has a start mark."""
    rows = await database.read("drill_held")
    return {row["recipient"]: bool(row["begun"]) for row in rows if row["node"].endswith(f":{pid}")}


async def count_unfinished(database: StatementReader) -> int:
    """Return how many messages are pending or processing."""
    return int((await database.read("drill_open"))[0]["n"])
