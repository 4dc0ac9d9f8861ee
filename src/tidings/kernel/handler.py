"""Handlers: what a kind of task does. The kernel knows no more of a domain than this."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from ..model.message import Message
from ..model.outcome import Outcome
from ..model.task import Task, TaskId, Transition
from ..store.port import Step


class Handler(Protocol):
    """Knows nothing of queues, claims or retries."""

    @property
    def listens(self) -> bool:
        """Whether `collect_effects` has anything to say just now; asked for every batch."""

    async def load(self, tasks: Sequence[Task]) -> Mapping[TaskId, Any]:
        """The contents of these tasks, in one batch."""

    async def run(self, task: Task, content: Any) -> Outcome:
        """One attempt."""

    def effects(self, moves: Sequence[tuple[Task, Transition]]) -> Sequence[Step]:
        """What the domain writes down with these moves: run after them, in their transaction.

        A claim may have been lost meanwhile: a statement looks for itself whether its task has moved.
        """


class ReservedSlot(NamedTuple):
    """A content that is to start at an instant, which is reserved for it."""

    at: int
    content: Any


@runtime_checkable
class RateLimitedHandler(Protocol):
    """What a handler may fill besides, for queues that have a rate and whose recipients have one, too."""

    async def take_slots(self, tasks: Sequence[Task], contents: Mapping[TaskId, Any]) -> Mapping[TaskId, Any]:
        """These contents, each as a `ReservedSlot` with the instant reserved for it; or a Defer instead."""

    async def move_slot(self, task: Task, turn: ReservedSlot, by: int | None) -> None:
        """It is used so much later; None: it is not used, and its recipient is free again."""


@runtime_checkable
class RemoteHandler(Protocol):
    """What a handler may fill besides: its attempts can be made by somebody who has no database."""

    async def outgoing(self, task: Task, content: Any) -> Message | Outcome:
        """What is to be sent, or what became of the task without."""

    def incoming(self, task: Task, content: Any, outcome: Outcome) -> Outcome:
        """What came of it, in the eyes of whoever knows its content."""


def collect_effects(
    handlers: Mapping[str, Handler], tasks: Sequence[Task], moves: Sequence[Transition]
) -> list[Step]:
    """What the domains write down with these tasks' moves."""
    steps: list[Step] = []
    for kind, handler in handlers.items():
        if handler.listens:
            own = [(task, move) for task, move in zip(tasks, moves, strict=True) if task.kind == kind]
            steps += handler.effects(own) if own else ()
    return steps
