"""The scheduler: makes due occurrences exactly once, with one indexed query per step.

The message or broadcast of an occurrence, its log line, and the schedule's last and next run are one
transaction, conditional on the version that was read. The occurrence row is unique, so it runs once despite
restarts, clock changes and concurrent schedulers. Catch-up after downtime is simply the first step.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import orjson

from ...kernel.clock import Clock
from ...model.errors import CallerError, Conflict, TemporaryError, error_text
from ...model.task import NewTask
from ...model.time import HOUR, SECOND, iso, micros
from ...store.port import Row, Step, Store, TableRows, WriteConflict
from ..events.event_types import outbox_step
from ..events.subscription_cache import SubscriptionCache
from ..message_validation import MESSAGE_COLUMNS
from .catch_up import ScheduleState, announced, late_expiry, plan_occurrences, schedule_state_of
from .occurrence_builder import Occurrence, OccurrenceBuilder, PreparedOccurrence
from .request_parser import OVERLAP_POLICIES

PAGE = 1000  # maximum schedules per transaction
SIZE = 4 << 20  # maximum characters of their contents
MAX_OCCURRENCES = 2000  # occurrences per transaction
IDLE = 1.0  # seconds between polls when nothing is due; hints may be lost
MAX_WAIT = 60 * SECOND  # between two checks of an occurrence that waits for the previous one
_DUTY = "schedule"
_PRUNED = 5000
_MAX_REASON_LENGTH = 500


@dataclass(slots=True)
class _ScheduleBatch:
    """What one transaction writes."""

    moves: list[Row] = field(default_factory=list)
    lines: list[Row] = field(default_factory=list)
    tasks: list[NewTask] = field(default_factory=list)
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    def add(self, making: PreparedOccurrence) -> None:
        """Append a prepared occurrence and shift the `only_if` indexes of its steps."""
        shift = len(self.steps)
        self.tasks += making.tasks
        self.rows += making.rows
        self.steps += [
            step if step.only_if is None else step._replace(only_if=step.only_if + shift) for step in making.steps
        ]


class Scheduler:
    """An actor; one step makes all due occurrences. Several may run concurrently."""

    name = "scheduler"
    makes_tasks = True

    def __init__(
        self,
        store: Store,
        clock: Clock,
        makers: Mapping[str, OccurrenceBuilder],
        *,
        listeners: SubscriptionCache | None = None,
        hold: timedelta = timedelta(seconds=2),  # how long a silent scheduler keeps its turn
        rest: timedelta = timedelta(milliseconds=100),  # minimum time between polls
        keep: timedelta = timedelta(days=30),  # retention of the log
    ) -> None:
        self._store = store
        self._clock = clock
        self._makers = makers
        self._listeners = listeners
        self._hold = micros(hold)
        self._rest = rest.total_seconds()
        self._keep = micros(keep)
        self._me = int(clock.chance() * (1 << 52))
        self._is_known = store.sole_worker
        self._looked: float | None = None
        self._pruned_at = 0

    async def step(self) -> float:
        """Make what is due; returns the seconds until the next instant."""
        wait = self._resting()
        if wait > 0:
            return wait
        while True:
            look = (await self._store.read("schedule_next"))[0]
            self._looked = self._clock.monotonic()
            now, due = look["now"], look["next_at"]
            if due is None or due > now:
                await self._prune(now)
                return IDLE if due is None else min(IDLE, max(0.001, (due - now) / SECOND))
            if not await self._has_turn():
                return self._hold / SECOND
            await self._run_page(await self._due(), now)

    def _resting(self) -> float:
        if self._looked is None:
            return 0.0
        return self._rest - (self._clock.monotonic() - self._looked)

    async def _has_turn(self) -> bool:
        """Whether this scheduler has the turn. Only an optimization that avoids conflicting writes."""
        if self._store.sole_worker:
            return True
        if not self._is_known:
            await self._store.write([Step("maintenance_join", {"name": _DUTY})])
            self._is_known = True
        turn = {"name": _DUTY, "me": self._me, "hold": self._hold}
        return bool((await self._store.write([Step("schedule_turn", turn)]))[0])

    async def _due(self) -> list[Row]:
        return await self._store.read("schedule_due", limit=PAGE, size=SIZE)

    async def _run_page(self, page: list[Row], now: int) -> None:
        """Write a page in few transactions; one schedule at a time after a failure."""
        try:
            await self._run_together(page, now)
        except TemporaryError:
            raise
        except Exception:  # one schedule that cannot be written must not block the others
            again = await self._due()
            if _same(page, again):
                for row in page:
                    await self._run_alone(row, now)

    async def _run_together(self, page: list[Row], now: int) -> None:
        batch = _ScheduleBatch()
        for number, row in enumerate(page):
            await self._prepare(batch, row, now)
            if len(batch.lines) >= MAX_OCCURRENCES:
                await self._write(batch)
                batch = _ScheduleBatch()
            if not number % 20:
                await asyncio.sleep(0)  # yield to the event loop
        await self._write(batch)

    async def _run_alone(self, row: Row, now: int) -> None:
        """Run one schedule alone: skips occurrences that ran, refuses one that cannot be written."""
        lines = await self._store.read("occurrence_after", schedule=row["id"], at=announced(row), limit=5000)
        ran = frozenset(line["at"] for line in lines)
        try:
            batch = _ScheduleBatch()
            await self._prepare(batch, row, now, ran=ran)
            await self._write(batch)
        except TemporaryError:
            raise
        except WriteConflict:
            return  # another scheduler was first
        except Exception as error:  # as above
            batch = _ScheduleBatch()
            await self._prepare(batch, row, now, ran=ran, refusal=error_text(error))
            await self._write(batch)

    async def _prepare(
        self,
        batch: _ScheduleBatch,
        row: Row,
        now: int,
        *,
        ran: frozenset[int] = frozenset(),
        refusal: str | None = None,
    ) -> None:
        """Add one schedule's occurrences to a batch."""
        try:
            state = schedule_state_of(row)
            planned = plan_occurrences(state if row["overlap"] == ALLOW else state._replace(left=1), now)
        except Exception as error:  # an invalid rule must not block the others
            paused_by_engine = {
                "id": row["id"],
                "version": row["version"],
                "problem": error_text(error)[:_MAX_REASON_LENGTH],
            }
            await self._store.write([Step("schedule_halt", paused_by_engine)])
            return
        made, last, problem = 0, row["last_created"], row["problem"]
        lines = [line._asdict() for line in planned.lines if line.at not in ran]
        may_overlap = row["overlap"] == ALLOW or not planned.make or last is None
        is_blocked = not may_overlap and bool(await self._store.read("schedule_unfinished", id=last))
        if is_blocked and row["overlap"] == WAIT:
            batch.moves.append(_waiting(row, state.next_at, now))
            return
        for at in planned.make:
            if at in ran:
                continue
            line = {"at": at, "outcome": "created", "created": None, "detail": _lateness(at, now)}
            if is_blocked:
                line |= {"outcome": "skipped", "detail": f"the previous occurrence ({last}) is not finished"}
                lines.append(line)
                continue
            try:
                if refusal is not None:
                    raise Conflict(refusal)
                making = await self._make(row, state, at, now)
            except CallerError as error:
                problem = str(error)[:_MAX_REASON_LENGTH]
                line |= {"outcome": "refused", "detail": problem}
            else:
                batch.add(making)
                made, last, problem = made + 1, making.id, None
                line["created"] = making.id
            lines.append(line)
        used_up = state.left is not None and made >= state.left
        next_at = None if used_up else planned.next_at
        batch.moves.append(
            {
                "id": row["id"], "version": row["version"], "due": row["next_at"], "next_at": next_at,
                "state": "ended" if next_at is None else "active", "fired": row["fired"] + made,
                "last_at": planned.last_at, "last_created": last, "held_at": None, "problem": problem,
            }
        )  # fmt: skip
        batch.lines += [{"created": None, **line, "schedule": row["id"]} for line in lines]
        batch.steps += self._events(row, lines, ended=next_at is None)

    async def _make(self, row: Row, state: ScheduleState, at: int, now: int) -> PreparedOccurrence:
        maker = self._makers.get(row["creates"])
        if maker is None:
            raise Conflict(f"this process cannot create a {row['creates']}", remedy="upgrade it")
        occurrence = Occurrence(row["id"], at, now, row["tenant"], late_expiry(state, at, now))
        return await maker.prepare(orjson.loads(row["body"]), occurrence)

    def _events(self, row: Row, lines: Sequence[Row], *, ended: bool) -> list[Step]:
        """Event steps: the last missed and the last refused occurrence, and the end."""
        listeners, entries = self._listeners, {f"schedule.{line['outcome']}": line for line in lines}
        if ended:
            entries["schedule.ended"] = {"at": announced(row), "detail": None}
        return [
            outbox_step(
                type_,
                row["id"],
                {"id": row["id"], "name": row["name"], "occurrence": iso(line["at"]), "reason": line["detail"]},
                tenant=row["tenant"],
            )
            for type_, line in entries.items()
            if type_ in _EVENT_TYPES and listeners is not None and listeners.has_subscriber(row["tenant"], (type_,))
        ]

    async def _write(self, batch: _ScheduleBatch) -> None:
        if not batch.moves:
            return
        moves, lines = orjson.dumps(batch.moves).decode(), orjson.dumps(batch.lines).decode()
        before = [
            Step("schedule_hold", {"moves": moves, "lines": lines, "n": len(batch.moves)}, needed=True),
            Step("schedule_move", {"moves": moves}),
            Step("occurrence_add", {"lines": lines}),
        ]
        after = [
            step if step.only_if is None else step._replace(only_if=step.only_if + len(before)) for step in batch.steps
        ]
        rows = TableRows("messages", MESSAGE_COLUMNS, batch.rows)
        await self._store.enqueue(batch.tasks, rows, also=[*before, *after])
        if batch.tasks or batch.steps:
            await self._store.hint()

    async def _prune(self, now: int) -> None:
        """Delete old log lines every hour, one page at a time."""
        if abs(now - self._pruned_at) < HOUR:
            return
        old = {"before": now - self._keep, "limit": _PRUNED}
        gone = (await self._store.write([Step("occurrence_prune", old)]))[0]
        if len(gone) < _PRUNED:
            self._pruned_at = now


ALLOW, _, WAIT = OVERLAP_POLICIES
_EVENT_TYPES = frozenset({"schedule.missed", "schedule.refused", "schedule.ended"})


def _waiting(row: Row, at: int, now: int) -> Row:
    """The move of a schedule whose occurrence waits; it is checked again later, less often the longer it waits."""
    pause = min(MAX_WAIT, max(SECOND, (now - at) // 10))
    kept = {name: row[name] for name in ("id", "version", "fired", "last_at", "last_created", "problem")}
    return {**kept, "due": row["next_at"], "next_at": now + pause, "held_at": at, "state": "active"}


def _same(before: Sequence[Row], after: Sequence[Row]) -> bool:
    """Whether the schedules are unchanged."""
    return [(row["id"], row["version"]) for row in before] == [(row["id"], row["version"]) for row in after]


def _lateness(at: int, now: int) -> str | None:
    late = (now - at) / SECOND
    return f"{late:.0f} s late" if late >= 1 else None
