"""Dead letters: messages that failed permanently and wait for a person.

Messages that certainly were not sent are kept apart from uncertain ones (`unknown`), where a retry may
deliver twice. Bulk moves run in bounded transactions, oldest first; each names the state it expects, so
concurrent changes are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import count
from typing import Any, NamedTuple

from ..inputs.pagination import Page, decode_position, page_size
from ..kernel.clock import Clock
from ..model import durations
from ..model.errors import Invalid
from ..model.task import Category, TaskState
from ..model.time import SECOND, iso, micros
from ..store.port import OrderingKey, Row, Step, Store
from .message_serializer import serialize_message
from .message_validation import MESSAGE_KIND, MessageLimits

MAX_MOVED = 10_000  # moved by one call
BATCH = 500  # moved by one transaction
WINDOW = 5_000  # scanned for one page
MAX_COUNTED = 10_000  # scanned for one count of causes
MAX_GROUPS = 100
EXPIRE_INTERVAL = 600.0  # seconds between two searches for old dead letters
MIN_RETRY_RATE, MAX_RETRY_RATE = 0.01, 10_000.0  # retries per second

Move = Callable[[Row], Step]


class DeadLetterMoves(NamedTuple):
    """How many were moved, and whether the limit was reached before the end."""

    moved: int
    more: bool


class _DeadLetterFilter(NamedTuple):
    """Selects dead letters; None matches any value."""

    tenant: str | None
    channel: str | None
    category: str | None
    unknown: bool | None
    failed_by: int | None = None  # failed at this time or earlier

    def matches(self, row: Row) -> bool:
        return (
            row["kind"] == MESSAGE_KIND
            and self.tenant in (None, row["tenant"])
            and (self.failed_by is None or row["changed_at"] <= self.failed_by)
            and self.channel in (None, row["queue"])
            and self.category in (None, row["category"])
            and self.unknown in (None, bool(row["unknown"]))
        )


class DeadLetters:
    """Bulk operations on dead letters; `MessageService` moves single ones.

    `grace` is how long after its due time a retried message may still be sent.
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
        """Dead letters, newest first, each with its last error. A page may be short before the end."""
        where: dict[str, Any] = {"before": decode_position(after), "window": WINDOW}
        chosen = {"tenant": tenant, "channel": channel, "category": _category(category), "unknown": unknown}
        rows = await self._store.read("dead_page", **where, **chosen, limit=page_size(limit))
        items = [{**serialize_message(row), "error": row["error"]} for row in rows]
        if len(rows) == limit:
            return Page(items, str(rows[-1]["task"]))
        floor = (await self._store.read("ended_floor", **where, state=TaskState.FAILED.value))[0]
        return Page(items, str(floor["floor"]) if floor["seen"] >= WINDOW else None)

    async def groups(self, *, tenant: str = "default") -> list[Row]:
        """Counts of the newest dead letters by channel, category and uncertainty, largest first."""
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
        """Retry many; uncertain ones only if asked for, because they may then arrive twice.

        `per_second` staggers their due times, to avoid a thundering herd on a provider that just recovered.
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
        """Discard many."""

        def cancel(row: Row) -> Step:
            return Step("cancel", {"id": row["id"], "expected": TaskState.FAILED.value})

        which = _DeadLetterFilter(tenant, channel, _category(category), unknown)
        return await self._sweep(which, limit, cancel, TaskState.CANCELLED, "discarded by hand")

    async def _sweep(
        self, which: _DeadLetterFilter, limit: int, move: Move, to: TaskState, reason: str
    ) -> DeadLetterMoves:
        """Visit each dead letter once, in order; one that fails again meanwhile is not visited again."""
        if not 1 <= limit <= MAX_MOVED:
            raise Invalid(f"limit is {limit}", field="limit", remedy=f"use 1 to {MAX_MOVED}")
        moved, after = 0, 0
        while rows := await self._store.read("dead_batch", after=after, limit=BATCH):
            after = rows[-1]["id"]
            chosen = [row for row in rows if which.matches(row)]
            if moved + len(chosen) > limit:
                return DeadLetterMoves(moved + await self._move(chosen[: limit - moved], move, to, reason), more=True)
            moved += await self._move(chosen, move, to, reason)
        return DeadLetterMoves(moved, more=False)

    async def _move(self, rows: Sequence[Row], move: Move, to: TaskState, reason: str) -> int:
        """Move these in one transaction with their history lines; returns how many still matched."""
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


class DeadLetterExpirer:
    """An actor that expires dead letters of every tenant at an age."""

    name = "dead letters"

    def __init__(self, store: Store, clock: Clock, age: timedelta) -> None:
        self._letters = DeadLetters(store)
        self._clock = clock
        self._age = age

    async def step(self) -> float:
        """Expire a limited number; returns the seconds until the next step."""
        before = self._clock.now() - micros(self._age)

        def expire(row: Row) -> Step:
            return Step("expire_failed", {"id": row["id"], "before": before})

        reason = f"a dead letter for {durations.humanize(self._age)} (dead_letter_retention)"
        which = _DeadLetterFilter(None, None, None, None, before)
        swept = await self._letters._sweep(which, MAX_MOVED, expire, TaskState.EXPIRED, reason)
        return 0.0 if swept.more else EXPIRE_INTERVAL


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
        raise Invalid(f"there is no category {category!r}", field="category", remedy=f"use one of: {', '.join(known)}")
    return category
