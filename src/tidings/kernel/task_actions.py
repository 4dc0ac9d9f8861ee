"""Actions of people and of late results on a task: cancel, retry, reschedule, expire; evidence of sending.

Each names the state that it expects, so a transition that is not allowed changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from ..model.outcome import Done, Outcome
from ..model.task import Task, TaskState
from ..model.time import iso
from ..store.port import OrderingKey, Row, Step, Store
from .decisions import sanitize_text

RESCHEDULED_PREFIX = "rescheduled to"  # prefix of the history entry


class TaskActionResult(StrEnum):
    """The result of an action."""

    DONE = "done"
    ASKED = "asked"  # it is running: it will be cancelled unless this attempt sends it
    REFUSED = "refused"  # its state does not allow the action
    MISSING = "missing"


async def get_task(store: Store, task: int) -> Row | None:
    """Return the row of a task, or None."""
    rows = await store.read("task_look", id=task)
    return rows[0] if rows else None


async def cancel(store: Store, task: int, *, reason: str) -> tuple[TaskActionResult, str | None]:
    """Cancel a pending or failed task, or ask a running one to stop. Return also the state it was in."""
    for _ in range(3):  # it may be claimed or settled between read and write
        row = await get_task(store, task)
        if row is None:
            return TaskActionResult.MISSING, None
        state = row["state"]
        if state == TaskState.PROCESSING:
            if (await store.write([Step("request_cancel", {"id": task})]))[0]:
                return TaskActionResult.ASKED, state
        elif state in (TaskState.PENDING, TaskState.FAILED):
            if await _move(
                store, row, Step("cancel", {"id": task, "expected": state}), state, TaskState.CANCELLED, reason
            ):
                return TaskActionResult.DONE, state
        else:
            return TaskActionResult.REFUSED, state
    return TaskActionResult.REFUSED, state


async def retry(
    store: Store, task: int, *, due_at: int, expires_at: int | None, reason: str
) -> tuple[TaskActionResult, str | None]:
    """Retry a dead letter."""
    row = await get_task(store, task)
    if row is None:
        return TaskActionResult.MISSING, None
    step = Step("revive", {"id": task, "due_at": due_at, "expires_at": expires_at})
    if await _move(store, row, step, TaskState.FAILED, TaskState.PENDING, reason, attempts=0):
        return TaskActionResult.DONE, row["state"]
    return TaskActionResult.REFUSED, row["state"]


async def reschedule(
    store: Store, task: int, *, due_at: int, expires_at: int | None
) -> tuple[TaskActionResult, str | None]:
    """Reschedule a task that has not started."""
    row = await get_task(store, task)
    if row is None:
        return TaskActionResult.MISSING, None
    step = Step("reschedule", {"id": task, "due_at": due_at, "expires_at": expires_at})
    record = _record(row, TaskState.PENDING, TaskState.PENDING, f"{RESCHEDULED_PREFIX} {iso(due_at)}")
    done = await store.change([step, record._replace(only_if=0)], keys=_keys(row))
    if not done[0]:
        return TaskActionResult.REFUSED, (await get_task(store, task) or row)["state"]
    return TaskActionResult.DONE, TaskState.PENDING


async def record_sent_evidence(store: Store, task: int, *, node: int | None, detail: str) -> bool:
    """Record evidence of sending: a pending or unknown task becomes done. Return whether it did."""
    row = await get_task(store, task)
    if row is None:
        return False
    state = row["state"]
    step = Step("evidence", {"id": task, "expected": state})
    if await _move(store, row, step, state, TaskState.DONE, detail, node=node):
        return True
    await store.write([_record(row, state, state, detail, node=node)])
    return False


def sent_evidence_steps(row: Row, detail: str, *, before: int) -> list[Step]:
    """Return the steps of `record_sent_evidence`, for a transaction in which `before` steps come first.

    They change nothing if the task is no longer in the state that was read.
    """
    record = _record(row, row["state"], TaskState.DONE, detail)
    return [Step("evidence", {"id": row["id"], "expected": row["state"]}), record._replace(only_if=before)]


EXPIRED_REASON = "expired before it could start"


async def expire_tasks(
    store: Store, rows: Sequence[Row], node: int, *, detail: str = EXPIRED_REASON, before: str | None = None
) -> int:
    """Expire these tasks, each with a history entry, and free the next tasks of their ordering keys.

    `before` names a statement that runs first for each: a rule that brings its expiry forward.
    """
    steps: list[Step] = []
    for row in rows:
        entry = {
            "task": row["id"],
            "origin": "pending",
            "state": "expired",
            "attempt": row["attempts"],
            "node": node or None,
            "category": None,
            "detail": detail,
        }
        if before is not None:
            steps.append(Step(before, {"id": row["id"]}))
        steps += [Step("expire", {"id": row["id"]}), Step("record_now", entry, only_if=len(steps))]
    keys: set[OrderingKey] = {
        (str(row["queue"]), str(row["ordering_key"])) for row in rows if row["ordering_key"] is not None
    }
    done = await store.change(steps, keys=keys)
    return sum(bool(expired) for step, expired in zip(steps, done, strict=True) if step.name == "expire")


async def record_late_result(store: Store, node: int, task: Task, outcome: Outcome) -> None:
    """Record a result whose claim was lost: in the history, and as proof if it reports a send."""
    if isinstance(outcome, Done):
        await record_sent_evidence(store, task.id, node=node, detail="a late result reports that it was sent")
        return
    row = await get_task(store, task.id)
    if row is not None:
        await store.write([_record(row, row["state"], row["state"], f"late result: {outcome!r}", node=node)])


async def _move(
    store: Store,
    row: Row,
    step: Step,
    origin: str,
    to: TaskState,
    detail: str,
    *,
    attempts: int | None = None,
    node: int | None = None,
) -> bool:
    """Write a transition of a person or a rule with its history entry; both or neither."""
    record = _record(row, origin, to, detail, attempts=attempts, node=node)
    done = await store.change([step, record._replace(only_if=0)], keys=_keys(row))
    return bool(done[0])


def _record(
    row: Row, origin: str, to: str, detail: str, *, attempts: int | None = None, node: int | None = None
) -> Step:
    return Step(
        "record_now",
        {
            "task": row["id"],
            "origin": str(origin),
            "state": str(to),
            "attempt": row["attempts"] if attempts is None else attempts,
            "node": node,
            "category": None,
            "detail": sanitize_text(detail),
        },
    )


def _keys(row: Row) -> list[OrderingKey]:
    return [] if row["ordering_key"] is None else [(row["queue"], row["ordering_key"])]
