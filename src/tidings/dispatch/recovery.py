"""Recovery: takes over the in-flight tasks of a dead dispatcher.

The dead dispatcher's outcome queue remains in the broker and has one consumer at a time. The successor
consumes it and settles in the dead node's name, because the claims are still that node's. When all timeouts
have passed and a marker has returned through the queue, tasks without a report are released, or unknown
if they may have started.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta

from ..kernel.channel_states import ChannelStates
from ..kernel.heartbeats import Node, is_dispatcher
from ..kernel.lanes import Lane
from ..kernel.node_context import NodeContext
from ..kernel.quarantine import ISOLATE_AFTER
from ..kernel.settler import AttemptResult, Settler
from ..model.errors import TemporaryError
from ..model.outcome import Defer
from ..model.task import NodeId, claimed_task
from ..model.time import SECOND
from ..observability.events import ReportRefused, TasksRecovered
from ..store.port import Row, Step
from .broker_messages import BrokerMessage, one_by_one
from .context import DispatchContext
from .in_flight_tasks import RETURN_REASONS, InFlightTask, InFlightTasks, completion_bound
from .rabbitmq import BrokerDown, outcome_queue
from .reconciliation import OutcomeMarkers, interpret_outcome, record_late_outcomes, settle_unknown
from .wire_format import MARKER_TYPE, Unreadable, decode_report

PREFETCH = 200
_PAGE = 1000


class DispatcherTakeover:
    """Recovers the tasks of one dead dispatcher."""

    def __init__(self, node: NodeId, me: Callable[[], NodeId], context: DispatchContext) -> None:
        (
            self._broker, self._store, self._clock, self._lanes, self._queues, self._handlers,
            self._terms, _, self._emit,
        ) = context  # fmt: skip
        self.node = node
        self._context = context
        self._in_flight = InFlightTasks(context.tokens)
        self._counts = [0, 0, 0]  # ended, released, unknown
        self._markers = OutcomeMarkers(context, lambda: node, me)
        self._reading = False
        dead = Node(context.store, context.clock, node_timeout=timedelta(seconds=1))
        dead.id = node
        states = ChannelStates(context.store, context.clock, context.lanes, emit=context.emit)
        self._settler = Settler(
            NodeContext(context.store, context.clock, dead, context.lanes, context.handlers, context.emit),
            states,
            settled=lambda _may_claim: None,
        )

    async def step(self) -> bool:
        """Continue the recovery. Return True when no task is left."""
        await self._load()
        if not self._in_flight.held:
            return await self._finish()
        if not self._broker.is_up:
            return False
        if not self._reading:
            await self._broker.read(outcome_queue(self.node), one_by_one(self._take), prefetch=PREFETCH, own=True)
            self._reading = True
        now = self._clock.monotonic()
        await self._settle_unknown(self._in_flight.unknown(now))
        if self._in_flight.silent(now):
            await self._markers.send(now)
        return False

    async def leave(self) -> None:
        """Stop; another dispatcher continues."""
        if self._reading:
            await self._broker.leave(outcome_queue(self.node))

    async def _load(self) -> None:
        """Read which tasks it still holds; another dispatcher may have settled some."""
        rows: list[Row] = []
        while True:
            after = rows[-1]["id"] if rows else 0
            page = await self._store.read("node_held", node=self.node, after=after, limit=_PAGE)
            rows += page
            if len(page) < _PAGE:
                break
        self._in_flight.held = {
            row["id"]: self._in_flight.held.get(row["id"]) or self._in_flight_task(row) for row in rows
        }

    def _in_flight_task(self, row: Row) -> InFlightTask:
        task = claimed_task(row)
        lane = self._lanes.get(task.queue) or Lane(task.queue)
        age = max(0.0, (self._clock.now() - row["changed_at"]) / SECOND)
        length = completion_bound(ttl=self._terms.ttl, within=self._terms.within, lane=lane)
        if task.queue not in self._queues:  # it ran in a local slot
            length = lane.deadline.total_seconds() if row["started_at"] is not None else 0.0
        return InFlightTask(
            task,
            lane,
            row["changed_at"],
            self._clock.monotonic() - age + length,
            started=row["started_at"] is not None,
            alone=task.crashes >= ISOLATE_AFTER,
        )

    async def _take(self, incoming: BrokerMessage) -> None:
        """Process a report or marker of the dead dispatcher's queue."""
        try:
            if incoming.kind == MARKER_TYPE:
                if (sent := self._markers.returned(incoming.body)) is not None:
                    await self._marked(sent)
            else:
                await self._apply(incoming)
        except Unreadable:
            pass  # its tasks are settled after their timeouts
        except TemporaryError:
            await self._broker.leave(outcome_queue(self.node))  # unacknowledged, it is redelivered in order
            self._reading = False
            return
        await incoming.ack()

    async def _apply(self, incoming: BrokerMessage) -> None:
        report = decode_report(incoming.body)
        effect = self._in_flight.apply(report, self._clock.monotonic())
        if effect.refused:
            self._emit(ReportRefused(report.transport, report.channel, effect.refused))
        if effect.started:
            await self._store.start(self.node, [entry.task for entry in effect.started])
        for entry, outcome, seconds in effect.ended:
            final = interpret_outcome(self._handlers, entry, outcome)
            self._settler.hand_in(AttemptResult(entry.task, final, entry.claimed_at, seconds))
        for entry, why in effect.returned:
            released = Defer(entry.task.due_at, RETURN_REASONS[why])
            self._settler.hand_in(AttemptResult(entry.task, released, entry.claimed_at, 0.0))
        while self._settler.unwritten:
            await self._settler.step()
        if effect.late:
            await record_late_outcomes(self._context, self.node, report.channel, effect.late)
        self._counts[0] += len(effect.ended)
        self._counts[1] += len(effect.returned)

    async def _marked(self, sent: float) -> None:
        silent = self._in_flight.silent(sent)
        for entry in silent:
            if not entry.may_have_started:
                why = Defer(entry.task.due_at, "its dispatcher died before an attempt started")
                self._settler.hand_in(AttemptResult(entry.task, why, entry.claimed_at, 0.0))
                self._in_flight.drop(entry)
                self._counts[1] += 1
        while self._settler.unwritten:
            await self._settler.step()
        await self._settle_unknown([entry for entry in silent if entry.may_have_started])

    async def _settle_unknown(self, entries: list[InFlightTask]) -> None:
        if entries:
            await settle_unknown(self._context, self.node, entries)
            self._counts[2] += len(entries)
            for entry in entries:
                self._in_flight.drop(entry)

    async def _finish(self) -> bool:
        await self._broker.leave(outcome_queue(self.node), drop=True)
        await self._store.write([Step("node_gone", {"id": self.node})])
        if any(self._counts):
            self._emit(TasksRecovered(self.node, *self._counts))
        return True


class DispatcherRecovery:
    """An actor on every dispatcher; the broker allows one consumer at a time."""

    name = "dispatch_recovery"

    def __init__(
        self, context: DispatchContext, me: Callable[[], NodeId], prepare: Callable[[], Awaitable[float]]
    ) -> None:
        self._context = context
        self._me = me
        self._prepare = prepare
        self._open: dict[NodeId, DispatcherTakeover] = {}

    async def step(self) -> float:
        """Prepare this dispatcher for publishing; find dead dispatchers and recover their tasks."""
        soon = await self._prepare()
        dead = {
            NodeId(row["id"])
            for row in await self._context.store.read("node_list")
            if row["state"] == "dead" and is_dispatcher(row) and row["id"] != self._me()
        }
        for node in [node for node in self._open if node not in dead]:
            await self._open.pop(node).leave()
        for node in dead:
            takeover = self._open.setdefault(node, DispatcherTakeover(node, self._me, self._context))
            try:
                if await takeover.step():
                    del self._open[node]
            except BrokerDown:
                pass  # the broker is unavailable: retry later
        return min(soon, 0.25) if self._open else soon
