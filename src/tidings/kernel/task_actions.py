"""What people and late news may do to a task: cancel, retry, reschedule, discard; evidence of sending.

Each names the state it expects, so a move that the table does not allow changes nothing and says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from ..model.outcome import Done, Outcome
from ..model.task import Task, TaskState
from ..model.time import iso
from ..store.port import OrderingKey, Row, Step, Store
from .decisions import sanitize_text

RESCHEDULED_PREFIX = "rescheduled to"  # how the line of the history begins


class TaskActionResult(StrEnum):
    """What came of a person's wish."""

    DONE = "done"
    ASKED = "asked"  # it is at work: it will end as cancelled unless this attempt sends it
    REFUSED = "refused"  # its state does not allow it
    MISSING = "missing"


async def get_task(store: Store, task: int) -> Row | None:
    """The standing of one task."""
    rows = await store.read("task_look", id=task)
    return rows[0] if rows else None


async def cancel(store: Store, task: int, *, reason: str) -> tuple[TaskActionResult, str | None]:
    """Cancel what waits; ask what is at work. Gives the state it was found in."""
    for _ in range(3):  # it may be claimed or settled between the look and the move
        row = await get_task(store, task)
        if row is None:
            return TaskActionResult.MISSING, None
        state = row["state"]
        if state == TaskState.PROCESSING:
            if (await store.write([Step("request_cancel", {"id": task})]))[0]:
                return TaskActionResult.ASKED, state
        elif state in (TaskState.PENDING, TaskState.FAILED):
            if await _move(
                store,
                row,
                Step("cancel", {"id": task, "expected": state}),
                state,
                TaskState.CANCELLED,
                reason,
            ):
                return TaskActionResult.DONE, state
        else:
            return TaskActionResult.REFUSED, state
    return TaskActionResult.REFUSED, state


async def retry(
    store: Store, task: int, *, due_at: int, expires_at: int | None, reason: str
) -> tuple[TaskActionResult, str | None]:
    """A person's retry of a dead letter."""
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
    """Another time for what has not begun."""
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
    """Proof that it was sent: what waits or is in doubt is done after all; otherwise only recorded."""
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
    """`record_sent_evidence` for a transaction of somebody else's, in which so many steps come before.

    Moves nothing if the task is no longer as it was looked at.
    """
    record = _record(row, row["state"], TaskState.DONE, detail)
    return [Step("evidence", {"id": row["id"], "expected": row["state"]}), record._replace(only_if=before)]


EXPIRED_REASON = "its time ran out before it could start"


async def expire_tasks(
    store: Store, rows: Sequence[Row], node: int, *, detail: str = EXPIRED_REASON, before: str | None = None
) -> int:
    """Expire these, each with its history line, and pass the turn of their order keys on.

    `before` names a statement that each goes through first: a rule that brings its expiry forward.
    """
    steps: list[Step] = []
    for row in rows:
        line = {
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
        steps += [Step("expire", {"id": row["id"]}), Step("record_now", line, only_if=len(steps))]
    keys: set[OrderingKey] = {
        (str(row["queue"]), str(row["ordering_key"])) for row in rows if row["ordering_key"] is not None
    }
    done = await store.change(steps, keys=keys)
    return sum(bool(gone) for step, gone in zip(steps, done, strict=True) if step.name == "expire")


async def record_late_result(store: Store, node: int, task: Task, outcome: Outcome) -> None:
    """A result whose claim had gone: kept in the history, and proof where it says 'sent'."""
    if isinstance(outcome, Done):
        await record_sent_evidence(store, task.id, node=node, detail="a late result says that it was sent")
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
    """A person's or a rule's move with its history line; both or neither."""
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
