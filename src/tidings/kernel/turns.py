"""Turns: attempts that wait for the instant which a rate limit reserved for them.

The start is written down a little before the instant, so that the time a commit takes is not part of the way.
An instant that was missed is given up, not used late: what leaves late arrives together with others.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from ..model.outcome import Defer, Outcome
from ..model.task import NodeId, Task, TaskId
from ..model.time import SECOND
from ..store.port import Store
from .clock import Clock
from .lanes import Lane

LEAD = 0.05  # seconds before its instant at which a start is written down
LATEST = 0.03  # seconds after its instant at which an attempt may begin: less than instants are spread
_REMEMBERED = 1000


class Turns:
    """One node's waiting attempts."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._missed: Counter[TaskId] = Counter()  # how often in a row; only here, as a help for who is slow

    async def wait(self, task: Task, lane: Lane, node: NodeId) -> Outcome | None:
        """Wait for the task's instant, having marked its start; an outcome instead says why it cannot."""
        loop = asyncio.get_running_loop()
        turn = loop.time() + (task.start_at - self._clock.now()) / SECOND
        await _until(turn - LEAD if lane.marks_start else turn)
        if task.expires_at is not None and task.expires_at <= max(task.start_at, self._clock.now()):
            return Defer(task.expires_at, "it expired while it waited for its turn")
        if lane.marks_start and task.id not in await self._store.start(node, [task]):
            return Defer(task.due_at, "the claim was lost before the start")
        await _until(turn)
        return self._late(task, loop.time() - turn)

    def _late(self, task: Task, by: float) -> Outcome | None:
        """Each miss doubles what is allowed, so that a node that is always slow still gets somewhere."""
        if by <= LATEST * 2 ** self._missed[task.id]:
            del self._missed[task.id]
            return None
        if len(self._missed) > _REMEMBERED:
            self._missed.clear()
        self._missed[task.id] += 1
        return Defer(self._clock.now(), "it missed its turn")


async def _until(moment: float) -> None:
    delay = moment - asyncio.get_running_loop().time()
    if delay > 0:
        await asyncio.sleep(delay)
