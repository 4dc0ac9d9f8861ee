"""The pruner: deletes old tasks, history and nodes in bounded pages. A conditional update elects one node."""

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
_PAGES = 10  # per step, so that steps stay short
# PostgreSQL drops history by whole days, and a dead node's tasks may be settled a day late.
_LONGER = 2 * DAY


async def claim_duty(store: Store, name: str, every: int, node: NodeId) -> bool:
    """Claim maintenance work for this node. Return False if it is not due, or another node has it."""
    duty = {"name": name, "every": every, "node": node}
    return bool((await store.write([Step("maintenance_join", {"name": name}), Step("maintenance_take", duty)]))[1])


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """Retention times. Dead letters are kept until a person decides."""

    history: timedelta = timedelta(days=30)  # nodes named by it are kept a little longer
    ended: timedelta = timedelta(days=90)  # done, cancelled and expired tasks with their contents
    tallies: timedelta = timedelta(days=7)
    daily: timedelta = timedelta(days=400)  # a year and the month to compare with


class PruneResult(NamedTuple):
    """What one step deleted."""

    tasks: int = 0
    history: int = 0
    nodes: int = 0


class Pruner:
    """Deletes at most ten pages per step."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        retention: RetentionPolicy,
        *,
        emit: Emit,
        me: Callable[[], NodeId],
        contents: tuple[str, ...] = (),  # the domains' statements that delete the contents of a task
    ) -> None:
        self._contents = contents
        self._store = store
        self._clock = clock
        self._retention = retention
        self._emit = emit
        self._me = me
        self._after = 0

    async def step(self) -> PruneResult:
        """Run if it is due and no other node runs it."""
        if not await claim_duty(self._store, _DUTY, _EVERY, self._me()):
            return PruneResult()
        now = self._clock.now()
        if self._store.dialect == "postgres":
            await self._store.read("history_partitions")
        rows = await self._store.write(
            [
                Step("prune_idempotency_keys", {"before": now}),
                Step("prune_recipient_rate_limits", {"before": now - HOUR}),
                Step("prune_attempt_tallies", {"before": now - micros(self._retention.tallies)}),
                Step("prune_daily_deliveries", {"before": now - micros(self._retention.daily)}),
                Step("daily_deliveries_add", {"before": now - 2 * MINUTE}),
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
        """Walk tasks by id, oldest first; start over when a recent one is found."""
        deleted = 0
        for _ in range(_PAGES):
            page = await self._store.read("prune_find", after=self._after, limit=_PAGE)
            old = [row["id"] for row in page if row["changed_at"] < before and row["state"] in _ENDED]
            if old:
                steps = [
                    Step(name, {"id": id_, "before": before}) for id_ in old for name in ("prune_task", *self._contents)
                ]
                await self._store.write(steps)
                deleted += len(old)
            if len(page) < _PAGE or page[-1]["changed_at"] > before + DAY:
                self._after = 0
                break
            self._after = page[-1]["id"]
        return deleted


_ENDED = frozenset({"done", "cancelled", "expired"})
