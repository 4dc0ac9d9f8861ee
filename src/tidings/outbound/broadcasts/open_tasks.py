"""Pause, resume, delay or end the open tasks of a broadcast, a page at a time.

A paused task moves to a queue that no worker serves: it is not claimed, does not expire, and keeps its order.
Every page names the state it expects, so a task that is claimed or moved meanwhile is left alone.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from ...store.port import Row, Step, Store

PAGE = 1000
_HISTORY = {
    "group_end": "group_end_publish",
    "group_revive": "group_revive_publish",
    "group_rest": "group_rest_publish",
}


def pause_queue(row: Row) -> str:
    """The pause queue of a broadcast, which no worker serves."""
    return f"~{row['id']}"


async def pause_tasks(store: Store, row: Row) -> int:
    """Move waiting tasks to the pause queue; returns how many."""
    return await _queue(store, row, pause_queue(row), 0, skip=pause_queue(row))


async def resume_tasks(store: Store, row: Row) -> int:
    """Move paused tasks back, with due times and expiries shifted by the length of the pause."""
    return await _queue(store, row, row["channel"], row["paused_for"], skip=row["channel"])


async def _queue(store: Store, row: Row, queue: str, later: int, *, skip: str) -> int:
    moved = 0
    async for page, n in _pages(store, row["group_id"], skip=skip):
        await store.write([Step("group_queue", {**page, "queue": queue, "later": later})])
        moved += n
    return moved


async def end_tasks(store: Store, row: Row, *, state: str, reason: str, asked: bool) -> int:
    """End waiting tasks with their history lines; with `asked`, request cancellation of those in flight."""
    ended = 0
    async for page, n in _pages(store, row["group_id"]):
        await store.write(with_history(store, "group_end", {**page, "state": state, "reason": reason, "asked": asked}))
        ended += n
    if asked:
        await store.write([Step("group_ask", {"group_id": row["group_id"]})])
    return ended


async def delay_tasks(store: Store, row: Row, part: int, until: int) -> None:
    """Delay the waiting tasks of a part until an instant."""
    params = {"part": part, "until": until, "reason": "quiet hours of the recipient"}
    async for page, _ in _pages(store, row["group_id"]):
        await store.write(with_history(store, "group_rest", {**page, **params}))


def with_history(store: Store, name: str, params: dict[str, Any]) -> list[Step]:
    """A bulk change with its history lines: one statement on PostgreSQL, two on SQLite."""
    history = [Step(_HISTORY[name], params)] if store.dialect == "sqlite" else []
    return [*history, Step(name, params)]


async def _pages(store: Store, group_id: int, *, skip: str | None = None) -> AsyncIterator[tuple[dict[str, Any], int]]:
    """The waiting tasks of a broadcast as id ranges; `skip` leaves out one queue."""
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
