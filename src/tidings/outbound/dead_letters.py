"""Dead letters: messages that failed for good and wait for a person.

Two kinds that are never mixed up by accident: those that certainly were not sent, and those in doubt
(`unknown`), where a retry may deliver twice. Many are moved a bounded transaction at a time, oldest first;
each move names the state it expects, so whatever somebody else changed meanwhile is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import count
from typing import Any, NamedTuple

from ..inputs.pagination import Page, decode_position, page_size
from ..model.errors import Invalid
from ..model.task import Category, TaskState
from ..model.time import SECOND, iso, micros
from ..store.port import OrderingKey, Row, Step, Store
from .message_serializer import serialize_message
from .message_validation import MESSAGE_KIND, MessageLimits

MAX_MOVED = 10_000  # moved by one call
BATCH = 500  # moved by one transaction
WINDOW = 5_000  # looked at by one page
MAX_COUNTED = 10_000  # looked at by one count of causes
MAX_GROUPS = 100
MIN_RETRY_RATE, MAX_RETRY_RATE = 0.01, 10_000.0  # retried a second

Move = Callable[[Row], Step]


class DeadLetterMoves(NamedTuple):
    """How many were moved, and whether the limit was reached before the end."""

    moved: int
    more: bool


class _DeadLetterFilter(NamedTuple):
    """Which dead letters are meant; None stands for any."""

    tenant: str
    channel: str | None
    category: str | None
    unknown: bool | None

    def takes(self, row: Row) -> bool:
        return (
            (row["kind"], row["tenant"]) == (MESSAGE_KIND, self.tenant)
            and self.channel in (None, row["queue"])
            and self.category in (None, row["category"])
            and self.unknown in (None, bool(row["unknown"]))
        )


class DeadLetters:
    """What faces may do with many dead letters; a single one is moved through `Messages`.

    `grace` is how long a retried message may still go out, as for a new one.
    """

    def __init__(self, store: Store, *, grace: timedelta = MessageLimits().grace) -> None:
        self._store = store
        self._grace = micros(grace)

    async def page(
        self,
        *,
        tenant: str = "default",
        channel: str | None = None,
        category: str | None = None,
        unknown: bool | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> Page:
        """Newest first, each with its last error. Like any list it may be short before the end."""
        where: dict[str, Any] = {"before": decode_position(after), "window": WINDOW}
        which = _DeadLetterFilter(tenant, channel, _category(category), unknown)
        rows = await self._store.read("dead_page", **where, **which._asdict(), limit=page_size(limit))
        items = [{**serialize_message(row), "error": row["error"]} for row in rows]
        if len(rows) == limit:
            return Page(items, str(rows[-1]["task"]))
        floor = (await self._store.read("ended_floor", **where, state=TaskState.FAILED.value))[0]
        return Page(items, str(floor["floor"]) if floor["seen"] >= WINDOW else None)

    async def groups(self, *, tenant: str = "default") -> list[Row]:
        """The newest dead letters counted by channel, category and doubt, most frequent first."""
        rows = await self._store.read(
            "dead_groups", tenant=tenant, kind=MESSAGE_KIND, window=MAX_COUNTED, limit=MAX_GROUPS
        )
        return [_group(row, await self._store.read("history_of", task=row["task"])) for row in rows]

    async def retry_all(
        self,
        *,
        channel: str | None = None,
        category: str | None = None,
        unknown: bool | None = False,
        per_second: float | None = None,
        tenant: str = "default",
        limit: int = MAX_MOVED,
    ) -> DeadLetterMoves:
        """Start many afresh. Those in doubt only when asked for, because they may then arrive twice.

        With `per_second` they are due one after the other, so that what has just been mended is not run over.
        """
        if per_second is not None and not MIN_RETRY_RATE <= per_second <= MAX_RETRY_RATE:
            remedy = f"use {MIN_RETRY_RATE:g} to {MAX_RETRY_RATE:,.0f}"
            raise Invalid(f"per_second is {per_second:g}", field="per_second", remedy=remedy)
        now: int = (await self._store.read("now"))[0]["now"]
        gap = 0 if per_second is None else SECOND / per_second
        turns = count()

        def revive(row: Row) -> Step:
            due = now + round(next(turns) * gap)
            return Step("revive", {"id": row["id"], "due_at": due, "expires_at": due + self._grace})

        which = _DeadLetterFilter(tenant, channel, _category(category), unknown)
        swept = await self._sweep(which, limit, revive, TaskState.PENDING, "retried by hand")
        if swept.moved:
            await self._store.hint()
        return swept

    async def discard_all(
        self,
        *,
        channel: str | None = None,
        category: str | None = None,
        unknown: bool | None = None,
        tenant: str = "default",
        limit: int = MAX_MOVED,
    ) -> DeadLetterMoves:
        """Give many up."""

        def cancel(row: Row) -> Step:
            return Step("cancel", {"id": row["id"], "expected": TaskState.FAILED.value})

        which = _DeadLetterFilter(tenant, channel, _category(category), unknown)
        return await self._sweep(which, limit, cancel, TaskState.CANCELLED, "discarded by hand")

    async def _sweep(
        self, which: _DeadLetterFilter, limit: int, move: Move, to: TaskState, reason: str
    ) -> DeadLetterMoves:
        """Go through all dead letters once, in order; what fails again meanwhile is not met a second time."""
        if not 1 <= limit <= MAX_MOVED:
            raise Invalid(f"limit is {limit}", field="limit", remedy=f"use 1 to {MAX_MOVED}")
        moved, after = 0, 0
        while rows := await self._store.read("dead_batch", after=after, limit=BATCH):
            after = rows[-1]["id"]
            chosen = [row for row in rows if which.takes(row)]
            if moved + len(chosen) > limit:
                return DeadLetterMoves(
                    moved + await self._move(chosen[: limit - moved], move, to, reason), more=True
                )
            moved += await self._move(chosen, move, to, reason)
        return DeadLetterMoves(moved, more=False)

    async def _move(self, rows: Sequence[Row], move: Move, to: TaskState, reason: str) -> int:
        """Move these in one transaction, each with its history line; gives how many were still there."""
        if not rows:
            return 0
        steps: list[Step] = []
        for row in rows:
            steps += [move(row), Step("record_now", _line(row, to, reason), only_if=len(steps))]
        keys: set[OrderingKey] = {
            (row["queue"], row["ordering_key"]) for row in rows if row["ordering_key"] is not None
        }
        done = await self._store.change(steps, keys=keys)
        return sum(bool(changed) for changed in done[::2])


def _line(row: Row, to: TaskState, reason: str) -> dict[str, Any]:
    attempts = 0 if to is TaskState.PENDING else row["attempts"]
    return {
        "task": row["id"], "origin": TaskState.FAILED.value, "state": to.value, "attempt": attempts,
        "node": None,
        "category": None, "detail": reason,
    }  # fmt: skip


def _group(row: Row, history: Sequence[Row]) -> Row:
    return {
        "channel": row["queue"],
        "category": row["category"],
        "unknown": bool(row["unknown"]),
        "count": row["n"],
        "since": iso(row["since"]),
        "latest": iso(row["latest"]),
        "error": next((entry["detail"] for entry in reversed(history) if entry["detail"]), None),
    }


def _category(category: str | None) -> str | None:
    known = [str(name) for name in Category]
    if category is not None and category not in known:
        raise Invalid(
            f"there is no category {category!r}", field="category", remedy=f"use one of: {', '.join(known)}"
        )
    return category
