"""Tasks: rows of the kernel's queue, their states and the allowed transitions.

Invariant: every write to `state` names the state that it expects; a transition that is not in TRANSITIONS
never happens, and the schema repeats the set of states as a CHECK.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple, NewType

TaskId = NewType("TaskId", int)
NodeId = NewType("NodeId", int)


class TaskState(StrEnum):
    """The state of a task."""

    PENDING = "pending"
    PROCESSING = "processing"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


TRANSITIONS: Mapping[TaskState, frozenset[TaskState]] = {
    # DONE from PENDING or FAILED: only by evidence of sending (a late result, a receipt).
    # FAILED from PENDING: only after the database lost data, if the task may have been sent before.
    TaskState.PENDING: frozenset(
        {TaskState.PROCESSING, TaskState.CANCELLED, TaskState.EXPIRED, TaskState.DONE, TaskState.FAILED}
    ),
    TaskState.PROCESSING: frozenset({TaskState.DONE, TaskState.FAILED, TaskState.PENDING, TaskState.CANCELLED}),
    TaskState.FAILED: frozenset({TaskState.PENDING, TaskState.CANCELLED, TaskState.EXPIRED, TaskState.DONE}),
}
FINAL_STATES = frozenset(TaskState) - frozenset(TRANSITIONS)


def can_transition(origin: TaskState, to: TaskState) -> bool:
    """Whether this transition is allowed."""
    return to in TRANSITIONS.get(origin, frozenset())


class Category(StrEnum):
    """Why an attempt failed. The set is closed."""

    TEMPORARY = "temporary"
    PERMANENT = "permanent"
    THROTTLING = "throttling"
    VALIDATION = "validation"
    SYSTEM = "system"


class OnUnknown(StrEnum):
    """What to do with a message whose outcome is unknown."""

    RESEND = "resend"
    ASK = "ask"
    HOLD = "hold"


class NewTask(NamedTuple):
    """A task to enqueue; the store assigns its id."""

    queue: str
    kind: str
    due_at: int
    tenant: str = "default"
    priority: int = 5
    ordering_key: str | None = None
    expires_at: int | None = None
    max_attempts: int | None = None  # None: the channel's policy


class Task(NamedTuple):
    """A claimed task. `claim_no` is the fencing token: only this claim may settle it."""

    id: TaskId
    tenant: str
    queue: str
    kind: str
    priority: int
    due_at: int
    attempts: int
    throttles: int
    claim_no: int
    crashes: int
    unknown: bool
    ordering_key: str | None
    expires_at: int | None
    max_attempts: int | None
    start_at: int = 0  # the slot that a rate limit reserved for it; 0: now


def claimed_task(row: Mapping[str, Any]) -> Task:
    """Return the task of a row with its columns."""
    return Task(*(row[name] for name in Task._fields[:14]))


class Transition(NamedTuple):
    """A transition out of `processing`, fenced by its claim."""

    id: TaskId
    claim_no: int
    to: TaskState
    attempts: int
    due_at: int | None = None  # only for a transition to pending
    category: Category | None = None
    detail: str | None = None
    unknown: bool = False
    throttles: int = 0
    crashes: int = 0
    opted_out: bool = False  # the recipient wants no messages; not a column of the task


class SettleResult(StrEnum):
    """The result of a transition."""

    KEPT = "kept"
    CLAIM_LOST = "claim_lost"
    CANCELLED = "cancelled"  # it was to return to pending, but a person had requested its cancellation
