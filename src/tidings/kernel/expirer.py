"""The sweeper: expires what ran out of time while its channel stood still.

A claim expires what it meets; behind a paused or parked channel nothing is claimed, so once in five minutes
somebody walks what is due there, a bounded page at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..model.task import NodeId
from ..model.time import MINUTE
from ..observability.events import Emit, TasksExpired
from ..store.port import Step, Store
from .clock import Clock
from .lanes import Lane
from .task_actions import expire_tasks

_DUTY = "sweep"
_EVERY = 5 * MINUTE
_PAGE = 500
_MOST = 200  # pages of one queue and step


class Expirer:
    """One step walks the queues that stand still."""

    def __init__(
        self, store: Store, clock: Clock, lanes: Mapping[str, Lane], *, emit: Emit, me: Callable[[], NodeId]
    ) -> None:
        self._store = store
        self._clock = clock
        self._lanes = lanes
        self._emit = emit
        self._me = me

    async def step(self) -> int:
        """Do the duty if it is due; gives how many have expired."""
        taken = await self._store.write(
            [
                Step("maintenance_join", {"name": _DUTY}),
                Step("maintenance_take", {"name": _DUTY, "every": _EVERY, "node": self._me()}),
            ]
        )
        if not taken[1]:
            return 0
        now = self._clock.now()
        standing = [
            row["name"]
            for row in await self._store.read("queue_list")
            if row["paused"]
            or (row["blocked_until"] or 0) > now
            or row["session_state"] not in (None, "connected")
            or row["name"] not in self._lanes
        ]
        gone = 0
        for queue in standing:
            for priority in range(10):
                gone += await self._sweep(queue, priority, now)
        if gone:
            self._emit(TasksExpired(gone))
        return gone

    async def _sweep(self, queue: str, priority: int, now: int) -> int:
        """Walk what is due; again from the start where an order key passed its turn to another late one."""
        gone, from_due, after, is_passed_on = 0, 0, 0, False
        for _ in range(_MOST):
            page = await self._store.read(
                "overdue", queue=queue, priority=priority, from_due=from_due, after=after, limit=_PAGE
            )
            late = [row for row in page if row["expires_at"] is not None and row["expires_at"] <= now]
            if late:
                gone += await expire_tasks(self._store, late, self._me())
                is_passed_on = is_passed_on or any(row["ordering_key"] is not None for row in late)
            if len(page) == _PAGE:
                from_due, after = page[-1]["due_at"], page[-1]["id"]
            elif is_passed_on:
                from_due, after, is_passed_on = 0, 0, False
            else:
                break
        return gone
