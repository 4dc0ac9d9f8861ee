"""Reconciliation: settles in-flight tasks of lost transports, and records late results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..kernel.decisions import TaskDecision
from ..kernel.handler import Handler, RemoteHandler
from ..kernel.quarantine import decide_after_crash
from ..kernel.reaper import settle_crashed
from ..kernel.task_actions import get_task, record_late_result, record_sent_evidence
from ..model.outcome import Done, Outcome
from ..model.task import NodeId, Task, TaskId, TaskState
from ..observability.events import ClaimLost, Emit
from ..store.port import Store
from .in_flight_tasks import InFlightTask
from .wire_format import ReportedOutcome, encode_outcome


async def settle_unknown(
    store: Store,
    node: NodeId,
    entries: Sequence[InFlightTask],
    handlers: Mapping[str, Handler],
    *,
    now: int,
    quarantine_after: int,
) -> list[TaskDecision]:
    """Settle tasks of a lost transport like tasks of a dead node: their outcome is unknown."""
    decisions = [
        decide_after_crash(e.task, e.lane, started=True, alone=e.alone, now=now, quarantine_after=quarantine_after)
        for e in entries
    ]
    await settle_crashed(store, node, [e.task for e in entries], decisions, handlers)
    return decisions


def interpret_outcome(handlers: Mapping[str, Handler], entry: InFlightTask, outcome: Outcome) -> Outcome:
    """Return the outcome as the task's handler interprets it."""
    handler = handlers.get(entry.task.kind)
    return handler.incoming(entry.task, entry.content, outcome) if isinstance(handler, RemoteHandler) else outcome


async def record_late_outcomes(
    store: Store, node: NodeId, channel: str, late: Sequence[ReportedOutcome], *, emit: Emit
) -> None:
    """Record results of lost claims: in the history, and as proof if they report a send.

    Their tokens are valid, so each of these claims was dispatched on this channel.
    """
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
        emit(ClaimLost(node, reported.key[0], channel, outcome, row["tenant"]))


def _task_stub(id_: int, queue: str) -> Task:
    return Task(TaskId(id_), "", queue, "", 0, 0, 0, 0, 0, 0, False, None, None, None)
