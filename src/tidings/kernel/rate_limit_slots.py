"""Rate-limit slots: attempts that wait for the send time which a rate limit has reserved for them.

The start mark is written a little before that time, so that its commit does not delay the send. A missed slot
is abandoned, not used late: late sends would arrive together with others. A task that keeps missing its slots
gets a longer one, in which nothing else starts.
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

MAX_LEAD = 0.05  # seconds, the longest time by which a start mark precedes its slot
_LEAST_LEAD = 0.005  # short, because a task that is marked but not sent has an unknown outcome after a crash
MAX_LATENESS = 0.03  # seconds by which an attempt may be late: less than the spread of slots
_REMEMBERED = 1000
_DOUBLINGS = 6  # of the allowed lateness, for slow nodes


def next_lead(lead: float, took: float) -> float:
    """Return the lead for the next start mark: at least twice the last duration, shrinking step by step."""
    return min(MAX_LEAD, max(_LEAST_LEAD, 2 * took, 0.7 * lead))


class RateLimitWaiter:
    """Makes attempts of one node wait for their slots."""

    def __init__(self, store: Store, clock: Clock, handlers: Mapping[str, Handler]) -> None:
        self._store = store
        self._clock = clock
        self._handlers = handlers
        self._lead = MAX_LEAD  # twice the duration of the slowest recent mark
        self._missed: Counter[TaskId] = Counter()  # in a row; kept in memory only

    async def wait(self, task: Task, lane: Lane, node: NodeId, content: Any) -> Outcome | None:
        """Mark the start and wait for the task's slot. Return an outcome if the task cannot start."""
        at, late = await self._slot(task, lane, content)
        slot_at = self._clock.monotonic() + (at - self._clock.now()) / SECOND
        await self._until(slot_at - self._lead if lane.marks_start else slot_at)
        if task.expires_at is not None and task.expires_at <= max(at, self._clock.now()):
            await self._move(task, content)
            return Defer(task.expires_at, "expired while waiting for its rate-limit slot")
        if lane.marks_start and not await self._mark(node, task):
            await self._move(task, content)
            return Defer(task.due_at, "the claim was lost before the attempt started")
        await self._until(slot_at)
        TOO_LATE.set(lambda: self._clock.monotonic() > slot_at + late)
        if TOO_LATE.get()():
            return await self.missed(task, content)
        self._missed.pop(task.id, None)
        return None

    async def _mark(self, node: NodeId, task: Task) -> bool:
        """Write the start mark. Return False if the claim was lost."""
        began = self._clock.monotonic()
        is_ours = task.id in await self._store.start(node, [task])
        self._lead = next_lead(self._lead, self._clock.monotonic() - began)
        return is_ours

    async def missed(self, task: Task, content: Any) -> Outcome:
        """Return the outcome of a missed slot: nothing was sent, retry immediately in another slot."""
        if len(self._missed) > _REMEMBERED:
            self._missed.clear()
        self._missed[task.id] += 1
        await self._move(task, content)
        return Defer(self._clock.now(), "missed its rate-limit slot")

    async def _slot(self, task: Task, lane: Lane, content: Any) -> tuple[int, float]:
        """Return the slot's time and the allowed lateness in seconds, which grows with each miss."""
        if not (misses := self._missed[task.id]):
            return task.start_at, MAX_LATENESS
        step = slot_interval(lane.interval)
        more = round(MAX_LATENESS * SECOND) * (2 ** min(misses, _DOUBLINGS) - 1)
        slot = {"queue": task.queue, "until": task.start_at + step, "step": step, "more": more}
        [found] = await self._store.write([Step("rate_limit_widen", slot)])
        at = found[0]["at"] if found else task.start_at
        await self._move(task, content, by=at - task.start_at + more)
        return at, MAX_LATENESS + more / SECOND

    async def _move(self, task: Task, content: Any, *, by: int | None = None) -> None:
        """Move the recipient's reservation; without `by` it is released."""
        handler = self._handlers[task.kind]
        if isinstance(content, ReservedSlot) and isinstance(handler, RateLimitedHandler):
            with suppress(TemporaryError):  # then the recipient waits once more, and nothing is lost
                await handler.move_slot(task, content, by)

    async def _until(self, moment: float) -> None:
        if (delay := moment - self._clock.monotonic()) > 0:
            await asyncio.sleep(delay)
