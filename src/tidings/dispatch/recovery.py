"""The heir: takes over what a dead dispatcher had given to transports.

Its outcome queue lives on in the broker and has one reader at a time, so the heir reads on where the dead one
stopped and settles in its name: the claims are still its claims. When every bound has passed and a marker has
come back through that queue, what nobody spoke of is given back, or in doubt if it may have begun.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import timedelta

from ..kernel.channel_states import ChannelStates
from ..kernel.clock import Clock
from ..kernel.decisions import ISOLATE_AFTER
from ..kernel.handler import Handler
from ..kernel.heartbeats import Node, is_dispatcher
from ..kernel.lanes import Lane
from ..kernel.settler import AttemptResult, Settler
from ..model.errors import TemporaryError
from ..model.outcome import Defer
from ..model.task import NodeId, Task
from ..model.time import SECOND
from ..observability.events import Emit, ReportRefused, TasksInherited
from ..store.port import Row, Step, Store
from .broker_messages import BrokerMessage
from .claim_tokens import ClaimTokens
from .in_flight_tasks import RETURN_REASONS, DispatchTimeouts, InFlightTask, InFlightTasks, completion_bound
from .rabbitmq import (
    OUTCOME_EXCHANGE,
    BrokerConnection,
    BrokerDown,
    PublishRefused,
    PublishUnconfirmed,
    outcome_queue,
)
from .reconciliation import interpret_outcome, record_late_outcomes, settle_unknown
from .wire_format import MARKER_TYPE, Unreadable, decode_marker, decode_report, encode_marker

PREFETCH = 200
_AGAIN = 5.0  # seconds after which a marker that has not come back is sent again
_PAGE = 1000


class DispatcherTakeover:
    """What one dead dispatcher left."""

    def __init__(
        self,
        node: NodeId,
        me: Callable[[], NodeId],
        link: BrokerConnection,
        store: Store,
        clock: Clock,
        lanes: Mapping[str, Lane],
        queues: Collection[str],
        handlers: Mapping[str, Handler],
        *,
        terms: DispatchTimeouts,
        tokens: ClaimTokens,
        emit: Emit,
    ) -> None:
        self.node = node
        self._me = me
        self._link = link
        self._store = store
        self._clock = clock
        self._lanes = lanes
        self._queues = queues
        self._handlers = handlers
        self._terms = terms
        self._emit = emit
        self._tokens = tokens
        self._errands = InFlightTasks(tokens)
        self._told = [0, 0, 0]  # ended, given back, in doubt
        self._marker: tuple[int, float] | None = None
        self._markers = 0
        self._reading = False
        dead = Node(store, clock, lease=timedelta(seconds=1))
        dead.id = node
        standing = ChannelStates(store, clock, lanes, emit=emit)
        self._settler = Settler(
            store, clock, dead, lanes, standing, handlers, emit=emit, settled=lambda _may_claim: None
        )

    async def step(self) -> bool:
        """Go on; True when nothing is left."""
        await self._load()
        if not self._errands.held:
            return await self._finish()
        if not self._link.is_up:
            return False
        if not self._reading:
            await self._link.read(outcome_queue(self.node), self._take, prefetch=PREFETCH, own=True)
            self._reading = True
        now = self._clock.monotonic()
        await self._doubt(self._errands.doubtful(now))
        if self._errands.silent(now) and (self._marker is None or now - self._marker[1] > _AGAIN):
            await self._ask(now)
        return False

    async def leave(self) -> None:
        """Somebody else goes on."""
        if self._reading:
            await self._link.leave(outcome_queue(self.node))

    async def _load(self) -> None:
        """What it still holds, by the database; somebody else may have been here meanwhile."""
        rows: list[Row] = []
        while True:
            after = rows[-1]["id"] if rows else 0
            page = await self._store.read("node_held", node=self.node, after=after, limit=_PAGE)
            rows += page
            if len(page) < _PAGE:
                break
        self._errands.held = {
            row["id"]: self._errands.held.get(row["id"]) or self._errand(row) for row in rows
        }

    def _errand(self, row: Row) -> InFlightTask:
        task = Task(*(row[name] for name in Task._fields[:14]))
        lane = self._lanes.get(task.queue) or Lane(task.queue)
        age = max(0.0, (self._clock.now() - row["changed_at"]) / SECOND)
        length = completion_bound(ttl=self._terms.ttl, within=self._terms.within, lane=lane)
        if task.queue not in self._queues:  # it ran it in slots of its own
            length = lane.deadline.total_seconds() if row["started_at"] is not None else 0.0
        return InFlightTask(
            task,
            lane,
            row["changed_at"],
            self._clock.monotonic() - age + length,
            started=row["started_at"] is not None,
            alone=task.crashes >= ISOLATE_AFTER,
        )

    async def _ask(self, now: float) -> None:
        self._markers += 1
        number = self._tokens.marker(self.node, self._markers)
        self._marker = (number, now)
        try:
            await self._link.publish(
                OUTCOME_EXCHANGE, str(self.node), encode_marker(number, self._me()), kind=MARKER_TYPE
            )
        except (BrokerDown, PublishRefused, PublishUnconfirmed):
            self._marker = None

    async def _take(self, batch: list[BrokerMessage]) -> None:
        """Reports and markers of the dead one's queue."""
        for incoming in batch:
            await self._take_one(incoming)

    async def _take_one(self, incoming: BrokerMessage) -> None:
        try:
            if incoming.kind == MARKER_TYPE:
                await self._marked(*decode_marker(incoming.body))
            else:
                await self._hear(incoming)
        except Unreadable:
            pass  # its bounds decide
        except TemporaryError:
            await self._link.leave(outcome_queue(self.node))  # unacknowledged, it comes again in its place
            self._reading = False
            return
        await incoming.ack()

    async def _hear(self, incoming: BrokerMessage) -> None:
        report = decode_report(incoming.body)
        heard = self._errands.hear(report, self._clock.monotonic())
        if heard.refused:
            self._emit(ReportRefused(report.transport, report.channel, heard.refused))
        if heard.started:
            await self._store.start(self.node, [in_flight_task.task for in_flight_task in heard.started])
        for in_flight_task, outcome, seconds in heard.ended:
            said = interpret_outcome(self._handlers, in_flight_task, outcome)
            self._settler.hand_in(
                AttemptResult(in_flight_task.task, said, in_flight_task.claimed_at, seconds)
            )
        for in_flight_task, why in heard.back:
            given_back = Defer(in_flight_task.task.due_at, RETURN_REASONS[why])
            self._settler.hand_in(
                AttemptResult(in_flight_task.task, given_back, in_flight_task.claimed_at, 0.0)
            )
        while self._settler.unwritten:
            await self._settler.step()
        if heard.late:
            await record_late_outcomes(self._store, self.node, report.channel, heard.late, emit=self._emit)
        self._told[0] += len(heard.ended)
        self._told[1] += len(heard.back)

    async def _marked(self, number: int, by: int) -> None:
        if self._marker is None or (number, by) != (self._marker[0], self._me()):
            return
        sent, self._marker = self._marker[1], None
        silent = self._errands.silent(sent)
        for in_flight_task in silent:
            if not in_flight_task.may_have_begun:
                why = Defer(in_flight_task.task.due_at, "its dispatcher died, and nobody had begun it")
                self._settler.hand_in(AttemptResult(in_flight_task.task, why, in_flight_task.claimed_at, 0.0))
                self._errands.drop(in_flight_task)
                self._told[1] += 1
        while self._settler.unwritten:
            await self._settler.step()
        await self._doubt([in_flight_task for in_flight_task in silent if in_flight_task.may_have_begun])

    async def _doubt(self, in_flight_tasks: list[InFlightTask]) -> None:
        if in_flight_tasks:
            await settle_unknown(
                self._store, self.node, in_flight_tasks, self._handlers,
                now=self._clock.now(), quarantine_after=self._terms.quarantine_after,
            )  # fmt: skip
            self._told[2] += len(in_flight_tasks)
            for in_flight_task in in_flight_tasks:
                self._errands.drop(in_flight_task)

    async def _finish(self) -> bool:
        await self._link.leave(outcome_queue(self.node), drop=True)
        await self._store.write([Step("node_gone", {"id": self.node})])
        if any(self._told):
            self._emit(TasksInherited(self.node, *self._told))
        return True


class DispatcherRecovery:
    """An actor on every dispatcher; the broker lets one of them read at a time."""

    name = "heir"

    def __init__(
        self,
        store: Store,
        me: Callable[[], NodeId],
        inherit: Callable[[NodeId], DispatcherTakeover],
        prepare: Callable[[], Awaitable[float]],
    ) -> None:
        self._store = store
        self._me = me
        self._inherit = inherit
        self._prepare = prepare
        self._open: dict[NodeId, DispatcherTakeover] = {}

    async def step(self) -> float:
        """Be ready to dispatch; look for dead dispatchers, and go on with what each of them left."""
        soon = await self._prepare()
        dead = {
            NodeId(row["id"])
            for row in await self._store.read("node_list")
            if row["state"] == "dead" and is_dispatcher(row) and row["id"] != self._me()
        }
        for node in [node for node in self._open if node not in dead]:
            await self._open.pop(node).leave()
        for node in dead:
            inheritance = self._open.setdefault(node, self._inherit(node))
            try:
                if await inheritance.step():
                    del self._open[node]
            except BrokerDown:
                pass  # the broker is away: later
        return min(soon, 0.25) if self._open else soon
