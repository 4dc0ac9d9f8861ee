"""The pruner: forgets what is old, a bounded page at a time. One node does it, by a conditional update."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from ..model.task import NodeId
from ..model.time import DAY, HOUR, MINUTE, SECOND, micros
from ..observability.events import Emit, Pruned
from ..store.port import Step, Store
from .clock import Clock

_DUTY = "prune"
_EVERY = 30 * SECOND
_PAGE = 1000
_PAGES = 10  # pages of one step, so that no step is long
_LONGER = (
    2 * DAY
)  # PostgreSQL forgets history by whole days, and what a dead node held may be settled a day late


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """How long things are kept. Dead letters are kept until a person decides."""

    history: timedelta = timedelta(days=30)  # and, a little longer, the processes that it names
    ended: timedelta = timedelta(days=90)  # done, cancelled and expired tasks with their contents
    tallies: timedelta = timedelta(days=7)


class PruneResult(NamedTuple):
    """What one step forgot."""

    tasks: int = 0
    history: int = 0
    nodes: int = 0


class Pruner:
    """One step forgets at most ten pages."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        retention: RetentionPolicy,
        *,
        emit: Emit,
        me: Callable[[], NodeId],
        contents: tuple[str, ...] = (),  # the domains' statements that forget what a task was about
    ) -> None:
        self._contents = contents
        self._store = store
        self._clock = clock
        self._retention = retention
        self._emit = emit
        self._me = me
        self._after = 0

    async def step(self) -> PruneResult:
        """Do the duty if it is due and nobody else has taken it."""
        taken = await self._store.write(
            [
                Step("maintenance_join", {"name": _DUTY}),
                Step("maintenance_take", {"name": _DUTY, "every": _EVERY, "node": self._me()}),
            ]
        )
        if not taken[1]:
            return PruneResult()
        now = self._clock.now()
        if self._store.dialect == "postgres":
            await self._store.read("history_partitions")
        rows = await self._store.write(
            [
                Step("prune_idempotency_keys", {"before": now}),
                Step("prune_recipient_rate_limits", {"before": now - HOUR}),
                Step("prune_attempt_tallies", {"before": now - micros(self._retention.tallies)}),
                Step("attempt_tally_pack", {"before": now - 2 * MINUTE}),
                Step("attempt_tally_drop", {"before": now - 2 * MINUTE}),
                Step("prune_nodes", {"before": now - micros(self._retention.history) - _LONGER}),
                Step("prune_history", {"before": now - micros(self._retention.history)}),
            ]
        )
        dropped = sum(row.get("dropped", 0) for row in rows[-1])
        done = PruneResult(await self._tasks(now - micros(self._retention.ended)), dropped, len(rows[-2]))
        if any(done):
            self._emit(Pruned(*done))
        return done

    async def _tasks(self, before: int) -> int:
        """Walk tasks by id, oldest first; start again from the beginning once a young one is met."""
        gone = 0
        for _ in range(_PAGES):
            page = await self._store.read("prune_find", after=self._after, limit=_PAGE)
            old = [row["id"] for row in page if row["changed_at"] < before and row["state"] in _ENDED]
            if old:
                steps = [
                    Step(name, {"id": id_, "before": before})
                    for id_ in old
                    for name in ("prune_task", *self._contents)
                ]
                await self._store.write(steps)
                gone += len(old)
            if len(page) < _PAGE or page[-1]["changed_at"] > before + DAY:
                self._after = 0
                break
            self._after = page[-1]["id"]
        return gone


_ENDED = frozenset({"done", "cancelled", "expired"})
