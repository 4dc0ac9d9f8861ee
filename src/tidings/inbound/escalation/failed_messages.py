"""Opens a case for a message that failed permanently, in the transaction that fails it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...kernel.clock import Clock
from ...kernel.handler import Handler, NamingHandler
from ...model.outcome import Outcome
from ...model.task import Task, TaskId, TaskState, Transition
from ...store.port import Step
from .reasons import Escalation, EscalationWriter


class EscalatingHandler:
    """Wraps a task handler and escalates failed tasks."""

    listens = True

    def __init__(self, handler: Handler, escalations: EscalationWriter, clock: Clock) -> None:
        self._handler = handler
        self._escalations = escalations
        self._clock = clock

    async def load(self, tasks: Sequence[Task]) -> Mapping[TaskId, Any]:
        return await self._handler.load(tasks)

    def log_ids(self, content: Any) -> Mapping[str, str]:
        return self._handler.log_ids(content) if isinstance(self._handler, NamingHandler) else {}

    async def run(self, task: Task, content: Any) -> Outcome:
        return await self._handler.run(task, content)

    def effects(self, moves: Sequence[tuple[Task, Transition]]) -> Sequence[Step]:
        own = list(self._handler.effects(moves)) if self._handler.listens else []
        for task, move in moves:
            if move.to is TaskState.FAILED:
                own += self._call(task, move)
        return own

    def _call(self, task: Task, move: Transition) -> list[Step]:
        issue = f"a message failed {move.attempts} times: {move.detail}"
        call = Escalation("message_failed", issue, f"message_failed:{task.id}")
        return self._escalations.steps(call, task.tenant, task.ordering_key or "", None, self._clock.now())
