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


class State(StrEnum):
    """Where a task stands."""

    PENDING = "pending"
    PROCESSING = "processing"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


LEGAL: Mapping[State, frozenset[State]] = {
    # DONE from PENDING or FAILED: by evidence of sending only (a late result, a receipt).
    # FAILED from PENDING: only after the database has gone back, if it may have been sent on the lost copy.
    State.PENDING: frozenset({State.PROCESSING, State.CANCELLED, State.EXPIRED, State.DONE, State.FAILED}),
    State.PROCESSING: frozenset({State.DONE, State.FAILED, State.PENDING, State.CANCELLED}),
    State.FAILED: frozenset({State.PENDING, State.CANCELLED, State.EXPIRED, State.DONE}),
}
FINAL = frozenset(State) - frozenset(LEGAL)


def may_move(origin: State, to: State) -> bool:
    """Whether the table of moves allows this change."""
    return to in LEGAL.get(origin, frozenset())


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
    order_key: str | None = None
    expires_at: int | None = None
    max_tries: int | None = None  # None = as the channel's policy says


class Task(NamedTuple):
    """A claimed task. `claim_no` is the fence: only this claim may settle it."""

    id: TaskId
    tenant: str
    queue: str
    kind: str
    priority: int
    due_at: int
    tries: int
    throttles: int
    claim_no: int
    crashes: int
    unknown: bool
    order_key: str | None
    expires_at: int | None
    max_tries: int | None
    start_at: int = 0  # the instant a rate limit reserved for it; 0 = now


class Transition(NamedTuple):
    """One move out of `processing`, fenced by the claim it belongs to."""

    id: TaskId
    claim_no: int
    to: State
    tries: int
    due_at: int | None = None  # only for a move back to pending
    category: Category | None = None
    detail: str | None = None
    unknown: bool = False
    throttles: int = 0
    crashes: int = 0


class Settled(StrEnum):
    """What became of a transition."""

    KEPT = "kept"
    CLAIM_LOST = "claim_lost"
    CANCELLED = "cancelled"  # the task was to go back to pending, but a person had asked to cancel it
