"""Quarantine of poison tasks: decides about tasks whose node died, and isolates the suspects. Pure.

A task that was on a node when it died is a suspect: from ISOLATE_AFTER crashes on it runs alone on its node.
If it is alone when a node dies, it is to blame, and after `quarantine_after` crashes it is quarantined:
failed, as a dead letter for a person to inspect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..model.task import Category, OnUnknown, Task, TaskState, Transition
from ..store.port import AttemptTally
from .decisions import TaskDecision, failed_move, pending_move
from .lanes import Lane

ISOLATE_AFTER = 2  # crashes after which a task runs alone


def decide_after_crash(
    task: Task, lane: Lane | None, *, started: bool, alone: bool, now: int, quarantine_after: int
) -> TaskDecision:
    """Decide the transition of a task whose node died: pending if it had not started, otherwise unknown.

    A task that is sent again keeps its due time, so it runs before the backlog that built up meanwhile.
    """
    crashes = task.crashes + 1 if alone else max(task.crashes, min(task.crashes + 1, ISOLATE_AFTER))
    if crashes >= quarantine_after and alone:
        reason = f"crashed its node {crashes} times and was quarantined"
        move = failed_move(task, reason, Category.SYSTEM, crashes=crashes, unknown=started)
        return TaskDecision(move, "failed:system")
    if not started or lane is None:
        detail = "its node died before the attempt started"
        return TaskDecision(pending_move(task, task.due_at, detail=detail, crashes=crashes), "released")
    evidence = "its node died during the attempt"
    if lane.on_unknown is OnUnknown.HOLD:
        return TaskDecision(failed_move(task, evidence, None, crashes=crashes, unknown=True), "unknown")
    due, fence = min(task.due_at, now), (task.id, task.claim_no, TaskState.PENDING)
    move = Transition(*fence, task.attempts, due, None, evidence, True, task.throttles, crashes)
    return TaskDecision(move, "unknown")


def crash_tally(tasks: Sequence[Task], decisions: Sequence[TaskDecision]) -> list[AttemptTally]:
    """Count these decisions by queue and outcome."""
    counts = Counter((task.queue, decision.what) for task, decision in zip(tasks, decisions, strict=True))
    return [AttemptTally(queue, what, n, 0) for (queue, what), n in counts.items()]
