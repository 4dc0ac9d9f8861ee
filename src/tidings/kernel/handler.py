"""Handlers: the interface of a task kind, and all that the kernel knows of a domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from ..model.message import Message
from ..model.outcome import Outcome
from ..model.task import Task, TaskId, Transition
from ..store.port import Step


class Handler(Protocol):
    """Runs the tasks of one kind. It does not deal with queues, claims or retries."""

    @property
    def listens(self) -> bool:
        """Whether `effects` may return steps at the moment; read for every batch."""

    async def load(self, tasks: Sequence[Task]) -> Mapping[TaskId, Any]:
        """Return the contents of these tasks, in one batch."""

    async def run(self, task: Task, content: Any) -> Outcome:
        """Run one attempt."""

    def effects(self, moves: Sequence[tuple[Task, Transition]]) -> Sequence[Step]:
        """Return the domain's writes for these transitions; they run after them, in the same transaction.

        A claim may have been lost meanwhile: each statement must check whether its task has moved.
        """


class SelfWritingHandler:
    """Base of handlers whose `run` commits all its results, so that transitions need no further writes."""

    listens = False

    def effects(self, moves: Sequence[tuple[Task, Transition]]) -> Sequence[Step]:
        """Return no steps."""
        return ()


class ReservedSlot(NamedTuple):
    """A content with the send time that is reserved for it."""

    at: int
    content: Any


@runtime_checkable
class RateLimitedHandler(Protocol):
    """Optional interface: reserves send times, for queues with a rate limit and rate limits per recipient."""

    async def take_slots(self, tasks: Sequence[Task], contents: Mapping[TaskId, Any]) -> Mapping[TaskId, Any]:
        """Return these contents as `ReservedSlot`, or a Defer where no time can be reserved."""

    async def move_slot(self, task: Task, turn: ReservedSlot, by: int | None) -> None:
        """Move the recipient's reservation by microseconds; None releases it."""


@runtime_checkable
class NamingHandler(Protocol):
    """Optional interface: names the subject of a task in the log."""

    def log_ids(self, content: Any) -> Mapping[str, str]:
        """Return the public ids of this content: `message`, or `job` and `batch`, or `inbound` and `source`."""


@runtime_checkable
class RemoteHandler(Protocol):
    """Optional interface: attempts can run in a process without a database."""

    async def outgoing(self, task: Task, content: Any) -> Message | Outcome:
        """Return the message to send, or an outcome if nothing is to be sent."""

    def incoming(self, task: Task, content: Any, outcome: Outcome) -> Outcome:
        """Return the final outcome of a remote attempt, adjusted by the content."""


def collect_effects(handlers: Mapping[str, Handler], tasks: Sequence[Task], moves: Sequence[Transition]) -> list[Step]:
    """Return the writes of all domains for these transitions."""
    steps: list[Step] = []
    for kind, handler in handlers.items():
        if handler.listens:
            own = [(task, move) for task, move in zip(tasks, moves, strict=True) if task.kind == kind]
            steps += handler.effects(own) if own else ()
    return steps
