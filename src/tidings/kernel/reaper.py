"""The reaper: declares silent nodes dead, and decides what becomes of what they left behind.

A node is silent when this process has seen its number stand still for a full lease on its own monotonic
clock, or when all watchers together have: what each of them observes is added up in the node's row, so that
processes which live shorter than a lease reap as well.

What had not started goes back at once, free of charge. What had started is in doubt, and is taken only when
its deadline has passed too, because until then the other side may still be working on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import NamedTuple

from ..model.task import NodeId, Task
from ..model.time import MINUTE, SECOND, micros
from ..observability.events import Emit, NodeLost, TasksReaped
from ..store.port import AttemptTally, Row, Step, Store, ordering_keys
from .clock import Clock
from .decisions import TaskDecision, decide_after_crash
from .handler import Handler, collect_effects
from .heartbeats import HeartbeatSighting, find_silent_nodes, is_dispatcher
from .lanes import Lane

_PAGE = 500
_WATCH = {"least": SECOND // 2, "most": 2 * SECOND}  # a reaper steps once a second
_HEIRLESS = 5 * MINUTE  # what a dead dispatcher had out is taken at the latest, if no other one does it


class ReapResult(NamedTuple):
    """What one step found."""

    given_back: int = 0
    in_doubt: int = 0
    set_aside: int = 0
    waiting: int = 0  # started, and not yet past their deadline


class Reaper:
    """One step looks at all nodes once."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        lanes: Mapping[str, Lane],
        *,
        handlers: Mapping[str, Handler],
        lease: timedelta,
        emit: Emit,
        me: Callable[[], NodeId],
        quarantine_after: int = 4,
    ) -> None:
        self._store = store
        self._clock = clock
        self._lanes = lanes
        self._handlers = handlers
        self._lease = lease
        self._emit = emit
        self._me = me
        self._poison_after = quarantine_after
        self._seen: dict[int, HeartbeatSighting] = {}

    @property
    def sees_others(self) -> bool:
        """Whether other nodes were alive at the last look."""
        return bool(self._seen)

    def forget(self) -> None:
        """A read failed: what was seen before proves nothing any more."""
        self._seen = {}

    async def step(self) -> ReapResult:
        """Give up silent nodes, and settle what dead ones held."""
        try:
            if not self._store.sole_worker:
                await self._store.write([Step("node_watch", {"me": self._me(), **_WATCH})])
            rows = await self._store.read("node_list")
            strays = await self._store.read("node_strays")
        except Exception:
            self.forget()
            raise
        others = [row for row in rows if row["id"] != self._me()]
        live = [row for row in others if row["state"] == "live"]
        self._seen, quiet = find_silent_nodes(
            self._seen, live, now=self._clock.monotonic(), lease=self._lease
        )
        quiet += [row for row in live if row not in quiet and row["silent_for"] >= micros(self._lease)]
        if self._store.sole_worker:
            quiet = live  # we hold the work lock, so no other process can be working
        dead = [row for row in [*others, *strays] if row["state"] != "live" and row["id"] != self._me()]
        for row in quiet:
            # No row back: it has beaten since it was read, while we slept. It is alive, and not buried.
            if (
                await self._store.write([Step("node_dead", {"id": row["id"], "heartbeat": row["heartbeat"]})])
            )[0]:
                self._emit(NodeLost(row["id"], row["name"]))
                dead.append(row)
        heirs = any(row["state"] == "live" and is_dispatcher(row) for row in rows)
        now = self._clock.now()
        dead = [
            row for row in dead if not is_dispatcher(row) or (not heirs and now - row["seen_at"] >= _HEIRLESS)
        ]
        results = [await self._bury(row) for row in dead]
        return ReapResult(*map(sum, zip(*results, strict=True))) if results else ReapResult()

    async def _bury(self, node: Row) -> ReapResult:
        total = ReapResult()
        after = 0
        alone: bool | None = None
        while True:
            held = await self._store.read("node_held", node=node["id"], after=after, limit=_PAGE)
            if not held:
                break
            alone = len(held) == 1 if alone is None else alone
            after = held[-1]["id"]
            now = self._clock.now()
            ripe = [row for row in held if _is_ripe(row, now)]
            decisions = [self._judge(row, alone, now, out=is_dispatcher(node)) for row in ripe]
            await self._settle(NodeId(node["id"]), ripe, decisions)
            total = ReapResult(
                total.given_back + sum(d.what == "given_back" for d in decisions),
                total.in_doubt + sum(d.what == "unknown" for d in decisions),
                total.set_aside + sum(d.what.startswith("failed") for d in decisions),
                total.waiting + len(held) - len(ripe),
            )
        if not total.waiting:
            await self._store.write([Step("node_gone", {"id": node["id"]})])
        if any(total[:3]):
            self._emit(TasksReaped(node["id"], *total[:3]))
        return total

    def _judge(self, row: Row, alone: bool, now: int, *, out: bool) -> TaskDecision:
        task = _task(row)
        return decide_after_crash(
            task,
            self._lanes.get(task.queue),
            started=out or _had_begun(row),  # what was with a transport may have begun
            alone=alone,
            now=now,
            quarantine_after=self._poison_after,
        )

    async def _settle(self, node: NodeId, rows: list[Row], decisions: list[TaskDecision]) -> None:
        if decisions:
            tasks = [_task(row) for row in rows]
            tally = [AttemptTally(row["queue"], d.what, 1, 0) for row, d in zip(rows, decisions, strict=True)]
            moves = [decision.move for decision in decisions]
            await self._store.settle(
                node,
                moves,
                keys=ordering_keys(tasks),
                tally=_summed(tally),
                also=collect_effects(self._handlers, tasks, moves),
            )


def _task(row: Row) -> Task:
    return Task(*(row[name] for name in Task._fields[:14]))


def _had_begun(row: Row) -> bool:
    """Without a start mark a resending channel may have acted; the others have certainly not."""
    return row["started_at"] is not None or row["on_unknown"] == "resend"


def _is_ripe(row: Row, now: int) -> bool:
    """A started task is taken at the later of its node's death and its own deadline."""
    return row["started_at"] is None or row["started_at"] + row["deadline"] <= now


def _summed(tally: list[AttemptTally]) -> list[AttemptTally]:
    sums: dict[tuple[str, str], int] = {}
    for count in tally:
        sums[count.queue, count.what] = sums.get((count.queue, count.what), 0) + count.n
    return [AttemptTally(queue, what, n, 0) for (queue, what), n in sums.items()]
