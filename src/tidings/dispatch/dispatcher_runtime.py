"""The office: everything a dispatcher needs beside its runner, wired together.

It keeps the link, gives each incarnation of the node its hands, reads the two queues that no node owns
(parcels that came back, reports that came too late), and says how things stand.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ..kernel.clock import Clock
from ..kernel.executor import Executor, LocalExecutor
from ..kernel.handler import Handler
from ..kernel.lanes import Lane
from ..kernel.runner import TaskRunner
from ..model.task import NodeId
from ..observability.events import (
    BatchSettled,
    Emit,
    Event,
    ParcelUnreadable,
    ReportRefused,
    ReportUnreadable,
)
from ..store.encryption import Cipher
from ..store.port import Store
from .broker_messages import BrokerMessage
from .claim_tokens import ClaimTokens
from .flow_control import dispatched_lane
from .in_flight_tasks import DispatchTimeouts
from .rabbitmq import (
    DEAD_LETTER_EXCHANGE,
    LATE_EXCHANGE,
    OUTCOME_EXCHANGE,
    BrokerConnection,
    BrokerDown,
    PublishRefused,
    PublishUnconfirmed,
)
from .reconciliation import record_late_outcomes
from .recovery import DispatcherRecovery, DispatcherTakeover
from .remote_executor import PREFETCH, RemoteExecutor
from .wire_format import (
    REPORT_TYPE,
    ReturnReason,
    TransportReport,
    Unreadable,
    decode_batch,
    decode_report,
    encode_report,
)


class DispatcherRuntime:
    """One dispatcher process. `lanes` is its own, and changes with the windows."""

    def __init__(
        self,
        urls: Sequence[str],
        store: Store,
        clock: Clock,
        lanes: Mapping[str, Lane],
        queues: Collection[str],
        handlers: Mapping[str, Handler],
        *,
        slots: int,
        terms: DispatchTimeouts,
        emit: Emit,
        name: str,
        cipher: Cipher,
    ) -> None:
        self._store = store
        self._clock = clock
        self._queues = queues
        self._handlers = handlers
        self._terms = terms
        self._emit = emit
        self._name = name
        self._limits = {queue: min(slots, lanes[queue].cap or slots) for queue in queues}
        self.lanes = {
            queue: dispatched_lane(lane, 0) if queue in queues else lane for queue, lane in lanes.items()
        }
        self._tokens = ClaimTokens()
        self._cipher = cipher
        self._hands: RemoteExecutor | None = None
        self._runner: TaskRunner | None = None
        self._link = BrokerConnection(
            urls, clock, emit=emit, channels=tuple(queues), name=name, came=self._came, went=self._went
        )
        self.heir = DispatcherRecovery(store, self._me, self._inherit, self._prepare)

    async def start(self) -> None:
        """Connect; what can never work is refused here."""
        await self._tokens.load(self._store, self._cipher)
        await self._link.read(DEAD_LETTER_EXCHANGE, self._came_back, prefetch=PREFETCH)
        await self._link.read(LATE_EXCHANGE, self._came_late, prefetch=PREFETCH)
        await self._link.start()

    async def stop(self) -> None:
        """Let go of the broker; the runner has stopped before."""
        if self._hands is not None:
            await self._hands.left()
        await self._link.stop()

    def hands(self, runner: TaskRunner, local: LocalExecutor) -> Executor:
        """The hands of one incarnation."""
        self._runner = runner
        self._hands = RemoteExecutor(
            self._link,
            self._store,
            self._clock,
            runner,
            self.lanes,
            self._queues,
            self._handlers,
            local=local,
            limits=self._limits,
            terms=self._terms,
            tokens=self._tokens,
            emit=self._emit,
        )
        return self._hands

    def heard(self, event: Event) -> None:
        """A sink for events: what was settled can be acknowledged."""
        if isinstance(event, BatchSettled) and self._hands is not None:
            self._hands.settled()

    @property
    def problem(self) -> str | None:
        """Why nothing can be given away, if the broker is the reason."""
        return self._link.problem

    def standing(self) -> Mapping[str, Any]:
        """For the node's row: what the others should know."""
        unserved = [] if self._hands is None else self._hands.unserved
        idle = f"no transport takes messages of {', '.join(unserved)}" if unserved else None
        stuck = unserved if self._link.problem is None else sorted(self._queues)
        said = {"broker": self._link.problem or idle or "connected", "broker_at": self._link.place}
        return {**said, "stuck": stuck} if stuck else said

    def _me(self) -> NodeId:
        return NodeId(0) if self._runner is None else self._runner.node.id

    def _inherit(self, node: NodeId) -> DispatcherTakeover:
        return DispatcherTakeover(
            node,
            self._me,
            self._link,
            self._store,
            self._clock,
            self.lanes,
            self._queues,
            self._handlers,
            terms=self._terms,
            tokens=self._tokens,
            emit=self._emit,
        )

    async def _prepare(self) -> float:
        return 1.0 if self._hands is None else await self._hands.prepare()

    def _came(self) -> None:
        self._turn()

    def _went(self) -> None:
        self._turn()

    def _turn(self) -> None:
        if self._hands is not None and self._runner is not None:
            self._hands.open_or_shut()
            self._runner.wake()

    async def _came_back(self, batch: list[BrokerMessage]) -> None:
        for incoming in batch:
            await self._take_back(incoming)

    async def _take_back(self, incoming: BrokerMessage) -> None:
        """Tell its dispatcher; a parcel that was never delivered has certainly not begun."""
        try:
            parcel = decode_batch(incoming.body)
        except Unreadable as error:
            self._emit(ParcelUnreadable(str(error)))
            await incoming.ack()  # the bounds of its tasks decide
            return
        why = ReturnReason.REDELIVERED if _was_out(incoming.headers) else ReturnReason.EXPIRED
        returned = [(item.key, why) for item in parcel.items]
        body = encode_report(TransportReport(parcel.channel, self._name, returned=returned))
        try:
            await self._link.publish(OUTCOME_EXCHANGE, incoming.reply_to, body, kind=REPORT_TYPE)
        except (BrokerDown, PublishRefused, PublishUnconfirmed):
            return  # it comes again, with the next connection
        await incoming.ack()

    async def _came_late(self, batch: list[BrokerMessage]) -> None:
        """Reports to a queue that is gone: their claims have been judged, and these are evidence."""
        for incoming in batch:
            await self._keep(incoming)

    async def _keep(self, incoming: BrokerMessage) -> None:
        try:
            if incoming.kind == REPORT_TYPE:
                report, refused = self._tokens.sift(decode_report(incoming.body))
                if refused:
                    self._emit(ReportRefused(report.transport, report.channel, refused))
                await record_late_outcomes(
                    self._store, self._me(), report.channel, report.outcomes, emit=self._emit
                )
        except Unreadable as error:
            self._emit(ReportUnreadable(str(error)))
        await incoming.ack()


def _was_out(headers: Mapping[str, Any]) -> bool:
    """Whether a transport had it: it was refused, or came back from one that is gone."""
    deaths = headers.get("x-death") or [{}]
    return bool(deaths[0].get("reason") != "expired")
