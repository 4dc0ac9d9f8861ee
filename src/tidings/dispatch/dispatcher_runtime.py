"""The dispatcher's runtime: everything it needs besides its runner.

It owns the broker connection, creates an executor for each incarnation of the node, consumes the two queues
that no node owns (dead-lettered batches, late reports), and reports its status.
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
from ..observability.events import BatchSettled, BatchUnreadable, Emit, Event, ReportRefused, ReportUnreadable
from ..store.encryption import Cipher
from ..store.port import Store
from .broker_messages import BrokerMessage, one_by_one
from .claim_tokens import ClaimTokens
from .context import DispatchContext
from .flow_control import dispatched_lane
from .in_flight_tasks import DispatchTimeouts
from .rabbitmq import DEAD_LETTER_EXCHANGE, LATE_EXCHANGE, OUTCOME_EXCHANGE, BrokerConnection, PublishError
from .reconciliation import record_late_outcomes
from .recovery import DispatcherRecovery
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
    """One dispatcher process. Its `lanes` change with the flow control."""

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
        self._name = name
        self._cipher = cipher
        self._limits = {queue: min(slots, lanes[queue].concurrency or slots) for queue in queues}
        self._executor: RemoteExecutor | None = None
        self._runner: TaskRunner | None = None
        self._broker = BrokerConnection(
            urls,
            clock,
            emit=emit,
            channels=tuple(queues),
            name=name,
            came=self._connection_changed,
            went=self._connection_changed,
        )
        self.lanes = {queue: dispatched_lane(lane, 0) if queue in queues else lane for queue, lane in lanes.items()}
        self._context = DispatchContext(
            self._broker, store, clock, self.lanes, queues, handlers, terms, ClaimTokens(), emit
        )
        self._emit = emit
        self.recovery = DispatcherRecovery(self._context, self._me, self._prepare)

    async def start(self) -> None:
        """Connect. Raises Misconfigured for problems that waiting cannot fix."""
        await self._context.tokens.load(self._context.store, self._cipher)
        await self._broker.read(DEAD_LETTER_EXCHANGE, one_by_one(self._return_batch), prefetch=PREFETCH)
        await self._broker.read(LATE_EXCHANGE, one_by_one(self._record_late), prefetch=PREFETCH)
        await self._broker.start()

    async def stop(self) -> None:
        """Close the broker connection, after the runner has stopped."""
        if self._executor is not None:
            await self._executor.left()
        await self._broker.stop()

    def executor(self, runner: TaskRunner, local: LocalExecutor) -> Executor:
        """Create the executor of one incarnation of the node."""
        self._runner = runner
        self._executor = RemoteExecutor(self._context, runner, local=local, limits=self._limits)
        return self._executor

    def on_event(self, event: Event) -> None:
        """Acknowledge reports after their results are settled (an event sink)."""
        if isinstance(event, BatchSettled) and self._executor is not None:
            self._executor.settled()

    @property
    def problem(self) -> str | None:
        """Why nothing can be published, if the broker is the reason."""
        return self._broker.problem

    def status(self) -> Mapping[str, Any]:
        """Return the status for the node's row."""
        unserved = [] if self._executor is None else self._executor.flow.unserved
        idle = f"no transport accepts messages of {', '.join(unserved)}" if unserved else None
        stuck = unserved if self._broker.problem is None else sorted(self._context.queues)
        state = {"broker": self._broker.problem or idle or "connected", "broker_at": self._broker.address}
        return {**state, "stuck": stuck} if stuck else state

    def _me(self) -> NodeId:
        return NodeId(0) if self._runner is None else self._runner.node.id

    async def _prepare(self) -> float:
        return 1.0 if self._executor is None else await self._executor.prepare()

    def _connection_changed(self) -> None:
        if self._executor is not None and self._runner is not None:
            self._executor.flow.set_all()  # nothing is claimed while nothing can be published
            self._runner.wake()

    async def _return_batch(self, incoming: BrokerMessage) -> None:
        """Return a dead-lettered batch to its dispatcher; if it was never delivered, it has not started."""
        try:
            batch = decode_batch(incoming.body)
        except Unreadable as error:
            self._emit(BatchUnreadable(str(error)))
            await incoming.ack()  # its tasks are settled after their timeouts
            return
        reason = ReturnReason.REDELIVERED if _was_delivered(incoming.headers) else ReturnReason.EXPIRED
        returned = [(item.key, reason) for item in batch.items]
        body = encode_report(TransportReport(batch.channel, self._name, returned=returned))
        try:
            await self._broker.publish(OUTCOME_EXCHANGE, incoming.reply_to, body, kind=REPORT_TYPE)
        except PublishError:
            return  # it is redelivered on the next connection
        await incoming.ack()

    async def _record_late(self, incoming: BrokerMessage) -> None:
        """Record a report for an outcome queue that no longer exists as evidence: its claims are settled."""
        try:
            if incoming.kind == REPORT_TYPE:
                report, refused = self._context.tokens.verify(decode_report(incoming.body))
                if refused:
                    self._emit(ReportRefused(report.transport, report.channel, refused))
                await record_late_outcomes(self._context, self._me(), report.channel, report.outcomes)
        except Unreadable as error:
            self._emit(ReportUnreadable(str(error)))
        await incoming.ack()


def _was_delivered(headers: Mapping[str, Any]) -> bool:
    """Whether a transport had received it, as opposed to expired in the queue."""
    deaths = headers.get("x-death") or [{}]
    return bool(deaths[0].get("reason") != "expired")
