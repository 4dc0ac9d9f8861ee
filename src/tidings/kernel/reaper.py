"""The reaper: declares silent nodes dead and recovers their tasks.

A node is silent if this process has seen the same heartbeat for a full lease on its own monotonic clock, or
if all observers together have: their observations are added up in the node's row, so that processes which
live shorter than a lease can reap, too.

Tasks that had not started return to pending immediately. Started tasks have an unknown outcome; they are
recovered after their deadline, because until then the attempt may still be running.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

from ..model.task import NodeId, Task, claimed_task
from ..model.time import MINUTE, SECOND, micros
from ..observability.events import Emit, NodeLost, TasksReaped
from ..store.port import Row, Step, Store, ordering_keys
from .clock import Clock
from .decisions import TaskDecision
from .handler import Handler, collect_effects
from .heartbeats import HeartbeatSighting, find_silent_nodes, is_dispatcher
from .lanes import Lane
from .quarantine import crash_tally, decide_after_crash

_PAGE = 500
_WATCH = {"least": SECOND // 2, "most": 2 * SECOND}  # a reaper steps once a second
_RECOVERY_TIMEOUT = 5 * MINUTE  # then a dead dispatcher's tasks are reaped if no dispatcher recovers them


class ReapResult(NamedTuple):
    """What one step recovered."""

    released: int = 0
    unknown: int = 0
    quarantined: int = 0
    waiting: int = 0  # started, and their deadline has not passed


class Reaper:
    """Each step checks all nodes once."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        lanes: Mapping[str, Lane],
        *,
        handlers: Mapping[str, Handler],
        node_timeout: timedelta,
        emit: Emit,
        me: Callable[[], NodeId],
        quarantine_after: int = 4,
    ) -> None:
        self._store = store
        self._clock = clock
        self._lanes = lanes
        self._handlers = handlers
        self._node_timeout = node_timeout
        self._emit = emit
        self._me = me
        self._poison_after = quarantine_after
        self._seen: dict[int, HeartbeatSighting] = {}

    @property
    def sees_others(self) -> bool:
        """Whether other nodes were alive at the last step."""
        return bool(self._seen)

    def forget(self) -> None:
        """Forget all sightings: after a failed read they prove nothing."""
        self._seen = {}

    async def step(self) -> ReapResult:
        """Declare silent nodes dead and recover the tasks of dead ones."""
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
            self._seen, live, now=self._clock.monotonic(), node_timeout=self._node_timeout
        )
        quiet += [row for row in live if row not in quiet and row["silent_for"] >= micros(self._node_timeout)]
        if self._store.sole_worker:
            quiet = live  # this process holds the work lock, so no other process can be working
        dead = [row for row in [*others, *strays] if row["state"] != "live" and row["id"] != self._me()]
        for row in quiet:
            # Without a row, the node has sent a heartbeat since it was read: it is alive.
            if (await self._store.write([Step("node_dead", {"id": row["id"], "heartbeat": row["heartbeat"]})]))[0]:
                self._emit(NodeLost(row["id"], row["name"]))
                dead.append(row)
        has_dispatcher = any(row["state"] == "live" and is_dispatcher(row) for row in rows)
        now = self._clock.now()
        dead = [
            row
            for row in dead
            if not is_dispatcher(row) or (not has_dispatcher and now - row["seen_at"] >= _RECOVERY_TIMEOUT)
        ]
        results = [await self._recover(row) for row in dead]
        return ReapResult(*map(sum, zip(*results, strict=True))) if results else ReapResult()

    async def _recover(self, node: Row) -> ReapResult:
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
            recoverable = [row for row in held if _is_recoverable(row, now)]
            decisions = [self._decide(row, alone, now, out=is_dispatcher(node)) for row in recoverable]
            await self._settle(NodeId(node["id"]), recoverable, decisions)
            total = ReapResult(
                total.released + sum(d.what == "released" for d in decisions),
                total.unknown + sum(d.what == "unknown" for d in decisions),
                total.quarantined + sum(d.what.startswith("failed") for d in decisions),
                total.waiting + len(held) - len(recoverable),
            )
        if not total.waiting:
            await self._store.write([Step("node_gone", {"id": node["id"]})])
        if any(total[:3]):
            self._emit(TasksReaped(node["id"], *total[:3]))
        return total

    def _decide(self, row: Row, alone: bool, now: int, *, out: bool) -> TaskDecision:
        task = claimed_task(row)
        return decide_after_crash(
            task,
            self._lanes.get(task.queue),
            started=out or _may_have_started(row),  # a task that was with a transport may have started
            alone=alone,
            now=now,
            quarantine_after=self._poison_after,
        )

    async def _settle(self, node: NodeId, rows: list[Row], decisions: list[TaskDecision]) -> None:
        if decisions:
            tasks = [claimed_task(row) for row in rows]
            await settle_crashed(self._store, node, tasks, decisions, self._handlers)


async def settle_crashed(
    store: Store,
    node: NodeId,
    tasks: Sequence[Task],
    decisions: Sequence[TaskDecision],
    handlers: Mapping[str, Handler],
) -> None:
    """Settle tasks of a dead node in its name, with their tallies and their domains' writes."""
    moves = [decision.move for decision in decisions]
    tally, own = crash_tally(tasks, decisions), collect_effects(handlers, tasks, moves)
    await store.settle(node, moves, keys=ordering_keys(tasks), tally=tally, also=own)


def _may_have_started(row: Row) -> bool:
    """Whether the task may have been sent: resending channels write no start mark."""
    return row["started_at"] is not None or row["on_unknown"] == "resend"


def _is_recoverable(row: Row, now: int) -> bool:
    """Whether the task can be recovered: it had not started, or its deadline has passed."""
    return row["started_at"] is None or row["started_at"] + row["deadline"] <= now
