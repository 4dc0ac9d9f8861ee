"""Tasks: rows of the kernel's queue, and the one table of moves between their states.

Invariant: every write to `state` names the state it expects; a pair that is not in LEGAL never happens, and
the schema repeats the set of states as a CHECK.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple, NewType

TaskId = NewType("TaskId", int)
NodeId = NewType("NodeId", int)


class TaskState(StrEnum):
    """Where a task stands."""

    PENDING = "pending"
    PROCESSING = "processing"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


TRANSITIONS: Mapping[TaskState, frozenset[TaskState]] = {
    # DONE from PENDING or FAILED: by evidence of sending only (a late result, a receipt).
    # FAILED from PENDING: only after the database has gone back, if it may have been sent on the lost copy.
    TaskState.PENDING: frozenset(
        {TaskState.PROCESSING, TaskState.CANCELLED, TaskState.EXPIRED, TaskState.DONE, TaskState.FAILED}
    ),
    TaskState.PROCESSING: frozenset(
        {TaskState.DONE, TaskState.FAILED, TaskState.PENDING, TaskState.CANCELLED}
    ),
    TaskState.FAILED: frozenset({TaskState.PENDING, TaskState.CANCELLED, TaskState.EXPIRED, TaskState.DONE}),
}
FINAL_STATES = frozenset(TaskState) - frozenset(TRANSITIONS)


def can_transition(origin: TaskState, to: TaskState) -> bool:
    """Whether the table of moves allows this change."""
    return to in TRANSITIONS.get(origin, frozenset())


class Category(StrEnum):
    """Why an attempt failed. These five and no others."""

    TEMPORARY = "temporary"
    PERMANENT = "permanent"
    THROTTLING = "throttling"
    VALIDATION = "validation"
    SYSTEM = "system"


class OnUnknown(StrEnum):
    """What to do when nobody can say whether a message left."""

    RESEND = "resend"
    ASK = "ask"
    HOLD = "hold"


class NewTask(NamedTuple):
    """Something to be done at a time, once; the store gives it its id."""

    queue: str
    kind: str
    due_at: int
    tenant: str = "default"
    priority: int = 5
    ordering_key: str | None = None
    expires_at: int | None = None
    max_attempts: int | None = None  # None = as the channel's policy says


class Task(NamedTuple):
    """A claimed task. `claim_no` is the fence: only this claim may settle it."""

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
    start_at: int = 0  # the instant a rate limit reserved for it; 0 = now


class Transition(NamedTuple):
    """One move out of `processing`, fenced by the claim it belongs to."""

    id: TaskId
    claim_no: int
    to: TaskState
    attempts: int
    due_at: int | None = None  # only for a move back to pending
    category: Category | None = None
    detail: str | None = None
    unknown: bool = False
    throttles: int = 0
    crashes: int = 0


class SettleResult(StrEnum):
    """What became of a transition."""

    KEPT = "kept"
    CLAIM_LOST = "claim_lost"
    CANCELLED = "cancelled"  # the task was to go back to pending, but a person had asked to cancel it
