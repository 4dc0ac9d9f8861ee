"""Reconciliation: settles in-flight tasks of lost transports, and records late results.

Before a silent task is given up, a marker passes through the outcome queue: when it comes back, all reports
that were sent before it have been consumed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..kernel.decisions import TaskDecision
from ..kernel.handler import Handler, RemoteHandler
from ..kernel.quarantine import decide_after_crash
from ..kernel.reaper import settle_crashed
from ..kernel.task_actions import get_task, record_late_result, record_sent_evidence
from ..model.outcome import Done, Outcome
from ..model.task import NodeId, Task, TaskId, TaskState
from ..observability.events import ClaimLost
from .context import DispatchContext
from .in_flight_tasks import InFlightTask
from .rabbitmq import OUTCOME_EXCHANGE, PublishError
from .wire_format import MARKER_TYPE, ReportedOutcome, decode_marker, encode_marker, encode_outcome

_MARKER_RETRY = 5.0  # seconds until a lost marker is sent again


class OutcomeMarkers:
    """Markers through the outcome queue of a node, one at a time; `sender` is the node that sends them."""

    def __init__(self, context: DispatchContext, node: Callable[[], NodeId], sender: Callable[[], NodeId]) -> None:
        self._context = context
        self._node = node
        self._sender = sender
        self._sent: tuple[int, float] | None = None  # number, and when
        self._count = 0

    async def send(self, now: float) -> None:
        """Send a marker behind all reports in the queue, unless one is on its way."""
        if self._sent is not None and now - self._sent[1] <= _MARKER_RETRY:
            return
        self._count += 1
        number = self._context.tokens.marker(self._node(), self._count)
        self._sent = (number, now)
        body = encode_marker(number, self._sender())
        try:
            await self._context.broker.publish(OUTCOME_EXCHANGE, str(self._node()), body, kind=MARKER_TYPE)
        except PublishError:
            self._sent = None

    def returned(self, body: bytes) -> float | None:
        """Return when this marker was sent, if it is the latest of ours. Raises Unreadable."""
        found = decode_marker(body)
        if self._sent is None or found != (self._sent[0], self._sender()):
            return None
        at, self._sent = self._sent[1], None
        return at


async def settle_unknown(context: DispatchContext, node: NodeId, entries: Sequence[InFlightTask]) -> list[TaskDecision]:
    """Settle tasks of a lost transport like tasks of a dead node: their outcome is unknown."""
    now, quarantine_after = context.clock.now(), context.terms.quarantine_after
    decisions = [
        decide_after_crash(e.task, e.lane, started=True, alone=e.alone, now=now, quarantine_after=quarantine_after)
        for e in entries
    ]
    await settle_crashed(context.store, node, [e.task for e in entries], decisions, context.handlers)
    return decisions


def interpret_outcome(handlers: Mapping[str, Handler], entry: InFlightTask, outcome: Outcome) -> Outcome:
    """Return the outcome as the task's handler interprets it."""
    handler = handlers.get(entry.task.kind)
    return handler.incoming(entry.task, entry.content, outcome) if isinstance(handler, RemoteHandler) else outcome


async def record_late_outcomes(
    context: DispatchContext, node: NodeId, channel: str, late: Sequence[ReportedOutcome]
) -> None:
    """Record results of lost claims: in the history, and as proof if they report a send.

    Their tokens are valid, so each of these claims was dispatched on this channel.
    """
    store = context.store
    for reported in late:
        row = await get_task(store, reported.key[0])
        if row is None or row["queue"] != channel:
            continue  # a transport may report for its own channel only
        if row["state"] == TaskState.DONE and row["claim_no"] == reported.key[1]:
            continue  # repeated
        if isinstance(reported.outcome, Done):
            await record_sent_evidence(
                store, reported.key[0], node=node, detail="a late report states that it was sent"
            )
        else:
            await record_late_result(store, node, _task_stub(reported.key[0], channel), reported.outcome)
        outcome = encode_outcome(reported.outcome)["outcome"]
        context.emit(ClaimLost(node, reported.key[0], channel, outcome, row["tenant"]))


def _task_stub(id_: int, queue: str) -> Task:
    return Task(TaskId(id_), "", queue, "", 0, 0, 0, 0, 0, 0, False, None, None, None)
