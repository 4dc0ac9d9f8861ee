"""Alarms: a message that failed for good calls a person, in the transaction that gives it up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...kernel.clock import Clock
from ...kernel.handler import Handler
from ...model.outcome import Outcome
from ...model.task import Task, TaskId, TaskState, Transition
from ...store.port import Step
from .reasons import Escalation
from .writer import EscalationWriter


class EscalatingHandler:
    """A handler of messages, with an alarm for those that it could not work through."""

    listens = True

    def __init__(self, handler: Handler, caller: EscalationWriter, clock: Clock) -> None:
        self._handler = handler
        self._caller = caller
        self._clock = clock

    async def load(self, tasks: Sequence[Task]) -> Mapping[TaskId, Any]:
        """As the handler does."""
        return await self._handler.load(tasks)

    async def run(self, task: Task, content: Any) -> Outcome:
        """As the handler does."""
        return await self._handler.run(task, content)

    def effects(self, moves: Sequence[tuple[Task, Transition]]) -> Sequence[Step]:
        """What the handler writes, and the calls."""
        own = list(self._handler.effects(moves)) if self._handler.listens else []
        for task, move in moves:
            if move.to is TaskState.FAILED:
                own += self._call(task, move)
        return own

    def _call(self, task: Task, move: Transition) -> list[Step]:
        issue = f"a message failed {move.attempts} times: {move.detail}"
        call = Escalation("message_failed", issue, f"message_failed:{task.id}")
        return self._caller.steps(call, task.tenant, task.ordering_key or "", None, self._clock.now())
