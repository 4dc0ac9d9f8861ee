"""Turns: attempts that wait for the instant which a rate limit reserved for them.

The start is written down a little before the instant, so that the time a commit takes is not part of the way.
An instant that was missed is given up, not used late: what leaves late arrives together with others. A task
that keeps missing its instants gets a longer slot, in which nothing else starts.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ..model.errors import TemporaryError
from ..model.outcome import Defer, Outcome
from ..model.start_check import TOO_LATE
from ..model.task import NodeId, Task, TaskId
from ..model.time import SECOND
from ..store.port import Step, Store
from ..store.rate_limits import slot_interval
from .clock import Clock
from .handler import Handler, RateLimitedHandler, ReservedSlot
from .lanes import Lane

MAX_LEAD = 0.05  # seconds before its instant at which a start is written down, at most
_LEAST_LEAD = 0.005  # what is marked and not yet sent when the process dies is unknown, so the lead is short
MAX_LATENESS = 0.03  # seconds after its instant at which an attempt may begin: less than instants are spread
_REMEMBERED = 1000
_DOUBLINGS = 6  # at most, of how late a slow node may be


def next_lead(lead: float, took: float) -> float:
    """The lead for the next start mark: at least twice what the last one took, and shorter step by step."""
    return min(MAX_LEAD, max(_LEAST_LEAD, 2 * took, 0.7 * lead))


class RateLimitWaiter:
    """One node's waiting attempts."""

    def __init__(self, store: Store, clock: Clock, handlers: Mapping[str, Handler]) -> None:
        self._store = store
        self._clock = clock
        self._handlers = handlers
        self._lead = MAX_LEAD  # twice what the slowest of the last marks took
        self._missed: Counter[TaskId] = Counter()  # how often in a row; only here, as a help for slow nodes

    async def wait(self, task: Task, lane: Lane, node: NodeId, content: Any) -> Outcome | None:
        """Wait for the task's instant, having marked its start; an outcome instead says why it cannot."""
        at, late = await self._slot(task, lane, content)
        turn = self._clock.monotonic() + (at - self._clock.now()) / SECOND
        await self._until(turn - self._lead if lane.marks_start else turn)
        if task.expires_at is not None and task.expires_at <= max(at, self._clock.now()):
            await self._move(task, content)
            return Defer(task.expires_at, "it expired while it waited for its turn")
        if lane.marks_start and not await self._mark(node, task):
            await self._move(task, content)
            return Defer(task.due_at, "the claim was lost before the start")
        await self._until(turn)
        TOO_LATE.set(lambda: self._clock.monotonic() > turn + late)
        if TOO_LATE.get()():
            return await self.missed(task, content)
        self._missed.pop(task.id, None)
        return None

    async def _mark(self, node: NodeId, task: Task) -> bool:
        """Write the start down; False where the claim was lost."""
        began = self._clock.monotonic()
        is_ours = task.id in await self._store.start(node, [task])
        self._lead = next_lead(self._lead, self._clock.monotonic() - began)
        return is_ours

    async def missed(self, task: Task, content: Any) -> Outcome:
        """Nothing was sent: try again at once, with another instant."""
        if len(self._missed) > _REMEMBERED:
            self._missed.clear()
        self._missed[task.id] += 1
        await self._move(task, content)
        return Defer(self._clock.now(), "it missed its turn")

    async def _slot(self, task: Task, lane: Lane, content: Any) -> tuple[int, float]:
        """The instant, and by how many seconds the attempt may be late: reserved, more after each miss."""
        if not (misses := self._missed[task.id]):
            return task.start_at, MAX_LATENESS
        step, more = (
            slot_interval(lane.interval),
            round(MAX_LATENESS * SECOND) * (2 ** min(misses, _DOUBLINGS) - 1),
        )
        slot = {"queue": task.queue, "until": task.start_at + step, "step": step, "more": more}
        [found] = await self._store.write([Step("rate_limit_widen", slot)])
        at = found[0]["at"] if found else task.start_at
        await self._move(task, content, by=at - task.start_at + more)
        return at, MAX_LATENESS + more / SECOND

    async def _move(self, task: Task, content: Any, *, by: int | None = None) -> None:
        """Its recipient is free so much later; without a number, at once."""
        handler = self._handlers[task.kind]
        if isinstance(content, ReservedSlot) and isinstance(handler, RateLimitedHandler):
            with suppress(TemporaryError):  # then its recipient waits once more, and nothing is lost
                await handler.move_slot(task, content, by)

    async def _until(self, moment: float) -> None:
        if (delay := moment - self._clock.monotonic()) > 0:
            await asyncio.sleep(delay)
