"""What becomes of in_flight_tasks that nobody can answer for any more, and of answers that come too late."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..kernel.decisions import TaskDecision, decide_after_crash
from ..kernel.handler import Handler, RemoteHandler, collect_effects
from ..kernel.task_actions import get_task, record_late_result, record_sent_evidence
from ..model.outcome import Done, Outcome
from ..model.task import NodeId, Task, TaskId, TaskState
from ..observability.events import ClaimLost, Emit
from ..store.port import AttemptTally, Store, ordering_keys
from .in_flight_tasks import InFlightTask
from .wire_format import ReportedOutcome, encode_outcome


async def settle_unknown(
    store: Store,
    node: NodeId,
    in_flight_tasks: Sequence[InFlightTask],
    handlers: Mapping[str, Handler],
    *,
    now: int,
    quarantine_after: int,
) -> list[TaskDecision]:
    """Whoever had these is gone: as with the tasks of a dead node, they are in doubt."""
    decisions = [
        decide_after_crash(
            e.task, e.lane, started=True, alone=e.alone, now=now, quarantine_after=quarantine_after
        )
        for e in in_flight_tasks
    ]
    moves = [decision.move for decision in decisions]
    tasks = [in_flight_task.task for in_flight_task in in_flight_tasks]
    sums: dict[tuple[str, str], int] = {}
    for task, decision in zip(tasks, decisions, strict=True):
        sums[task.queue, decision.what] = sums.get((task.queue, decision.what), 0) + 1
    tally = [AttemptTally(queue, what, n, 0) for (queue, what), n in sums.items()]
    await store.settle(
        node, moves, keys=ordering_keys(tasks), tally=tally, also=collect_effects(handlers, tasks, moves)
    )
    return decisions


def interpret_outcome(
    handlers: Mapping[str, Handler], in_flight_task: InFlightTask, outcome: Outcome
) -> Outcome:
    """What came of it, in the eyes of whoever knows its content."""
    handler = handlers.get(in_flight_task.task.kind)
    return (
        handler.incoming(in_flight_task.task, in_flight_task.content, outcome)
        if isinstance(handler, RemoteHandler)
        else outcome
    )


async def record_late_outcomes(
    store: Store, node: NodeId, channel: str, late: Sequence[ReportedOutcome], *, emit: Emit
) -> None:
    """Results of claims that have gone: kept in the history, and proof where they say 'sent'.

    Their tokens hold, so each of these claims was dispatched on this channel.
    """
    for told in late:
        row = await get_task(store, told.key[0])
        if row is None or row["queue"] != channel:
            continue  # a transport speaks for its own channel only
        if row["state"] == TaskState.DONE and row["claim_no"] == told.key[1]:
            continue  # the same news a second time
        if isinstance(told.outcome, Done):
            await record_sent_evidence(
                store, told.key[0], node=node, detail="a late report says that it was sent"
            )
        else:
            await record_late_result(store, node, _bare(told.key[0], channel), told.outcome)
        emit(ClaimLost(node, told.key[0], channel, encode_outcome(told.outcome)["outcome"]))


def _bare(id_: int, queue: str) -> Task:
    return Task(TaskId(id_), "", queue, "", 0, 0, 0, 0, 0, 0, False, None, None, None)
