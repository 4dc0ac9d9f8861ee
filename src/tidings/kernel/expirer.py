"""The expirer: expires overdue tasks of channels that are stopped.

A claim expires overdue tasks that it finds. Nothing is claimed from a paused, throttled or disconnected
channel, so every five minutes one node walks the due tasks of such channels, a bounded page at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..model.task import NodeId
from ..model.time import MINUTE
from ..observability.events import Emit, TasksExpired
from ..store.port import Store
from .clock import Clock
from .lanes import Lane
from .pruner import claim_duty
from .task_actions import expire_tasks

_DUTY = "expire"
_EVERY = 5 * MINUTE
_PAGE = 500
_MOST = 200  # pages per queue and step


class Expirer:
    """Expires overdue tasks, one step at a time."""

    def __init__(
        self, store: Store, clock: Clock, lanes: Mapping[str, Lane], *, emit: Emit, me: Callable[[], NodeId]
    ) -> None:
        self._store = store
        self._clock = clock
        self._lanes = lanes
        self._emit = emit
        self._me = me

    async def step(self) -> int:
        """Run if it is due and no other node runs it. Return the number of expired tasks."""
        if not await claim_duty(self._store, _DUTY, _EVERY, self._me()):
            return 0
        now = self._clock.now()
        stopped = [
            row["name"]
            for row in await self._store.read("queue_list")
            if row["paused"]
            or (row["blocked_until"] or 0) > now
            or row["session_state"] not in (None, "connected")
            or row["name"] not in self._lanes
        ]
        expired = 0
        for queue in stopped:
            for priority in range(10):
                expired += await self._expire_due(queue, priority, now)
        if expired:
            self._emit(TasksExpired(expired))
        return expired

    async def _expire_due(self, queue: str, priority: int, now: int) -> int:
        """Walk the due tasks of one priority; start over if an expired task has freed its ordering key."""
        expired, from_due, after, has_freed_key = 0, 0, 0, False
        for _ in range(_MOST):
            page = await self._store.read(
                "overdue", queue=queue, priority=priority, from_due=from_due, after=after, limit=_PAGE
            )
            late = [row for row in page if row["expires_at"] is not None and row["expires_at"] <= now]
            if late:
                expired += await expire_tasks(self._store, late, self._me())
                has_freed_key = has_freed_key or any(row["ordering_key"] is not None for row in late)
            if len(page) == _PAGE:
                from_due, after = page[-1]["due_at"], page[-1]["id"]
            elif has_freed_key:
                from_due, after, has_freed_key = 0, 0, False
            else:
                break
        return expired
