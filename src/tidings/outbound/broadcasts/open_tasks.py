"""Parking: what is open of a broadcast is set aside, brought back, put off or ended, a page at a time.

A parked task is moved to a queue that nobody serves: it is not claimed, does not expire, and keeps its place.
Every page names what it expects, so a task that is claimed or moved meanwhile is left alone.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from ...store.port import Row, Step, Store

PAGE = 1000
_TOLD = {
    "group_end": "group_end_publish",
    "group_revive": "group_revive_publish",
    "group_rest": "group_rest_publish",
}


def pause_queue(row: Row) -> str:
    """The queue that nobody serves."""
    return f"~{row['id']}"


async def pause_tasks(store: Store, row: Row) -> int:
    """Set aside what waits; gives how many there were."""
    return await _queue(store, row, pause_queue(row), 0, skip=pause_queue(row))


async def resume_tasks(store: Store, row: Row) -> int:
    """Put back what was set aside, with the time that it stood still on top of its own."""
    return await _queue(store, row, row["channel"], row["paused_for"], skip=row["channel"])


async def _queue(store: Store, row: Row, queue: str, later: int, *, skip: str) -> int:
    moved = 0
    async for page, n in _pages(store, row["group_id"], skip=skip):
        await store.write([Step("group_queue", {**page, "queue": queue, "later": later})])
        moved += n
    return moved


async def end_tasks(store: Store, row: Row, *, state: str, reason: str, asked: bool) -> int:
    """End what waits, each with its history line; ask what is at work, if a person wanted it."""
    ended = 0
    async for page, n in _pages(store, row["group_id"]):
        await store.write(
            with_history(store, "group_end", {**page, "state": state, "reason": reason, "asked": asked})
        )
        ended += n
    if asked:
        await store.write([Step("group_ask", {"group_id": row["group_id"]})])
    return ended


async def delay_tasks(store: Store, row: Row, part: int, until: int) -> None:
    """Nothing of a part is due before an instant."""
    params = {"part": part, "until": until, "reason": "quiet hours of the recipient"}
    async for page, _ in _pages(store, row["group_id"]):
        await store.write(with_history(store, "group_rest", {**page, **params}))


def with_history(store: Store, name: str, params: dict[str, Any]) -> list[Step]:
    """A move of many with its history lines: one statement on PostgreSQL, two on SQLite."""
    tell = [Step(_TOLD[name], params)] if store.dialect == "sqlite" else []
    return [*tell, Step(name, params)]


async def _pages(
    store: Store, group_id: int, *, skip: str | None = None
) -> AsyncIterator[tuple[dict[str, Any], int]]:
    """What waits of a lot, as ranges of ids; `skip` leaves out those of one queue."""
    after = 0
    while True:
        rows = await store.read("group_open", group_id=group_id, after=after, parked=skip, limit=PAGE)
        if not rows:
            return
        upto = rows[-1]["id"]
        yield {"group_id": group_id, "after": after, "upto": upto}, len(rows)
        if len(rows) < PAGE:
            return
        after = upto
