"""Attempts: run one claimed task and always report an outcome, even if the handler raises."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ..model.outcome import Defer, Outcome, Unknown, raised
from ..model.start_check import TOO_LATE, StartedTooLate
from .crash_points import crash_point
from .executor import ReadyTask
from .node_context import NodeContext
from .rate_limit_slots import RateLimitWaiter
from .settler import AttemptResult


class AttemptRunner:
    """Runs the attempts of one node."""

    def __init__(
        self, context: NodeContext, *, hand_in: Callable[[AttemptResult], None], is_stopping: Callable[[], bool]
    ) -> None:
        self._clock, self._node = context.clock, context.node
        self._hand_in = hand_in
        self._is_stopping = is_stopping
        self._slots = RateLimitWaiter(context.store, context.clock, context.handlers)

    async def make(self, job: ReadyTask) -> None:
        """Run one attempt and report its outcome through `hand_in`."""
        began = self._clock.monotonic()
        outcome: Outcome | None = None
        has_begun = False
        TOO_LATE.set(bool)
        try:
            if job.task.start_at:
                outcome = await self._slots.wait(job.task, job.lane, self._node.id, job.content)
            if outcome is None and not self._node.is_trusted:
                outcome = Defer(job.claimed_at, "this node could not confirm its claim")
            if outcome is None:
                has_begun = True
                try:
                    outcome = await job.run(job.task, job.content)
                except StartedTooLate:
                    outcome = await self._slots.missed(job.task, job.content)
        except asyncio.CancelledError:
            if (me := asyncio.current_task()) is not None:
                me.uncancel()  # the slot continues
            why = "the node stopped" if self._is_stopping() else "its deadline passed"
            if has_begun:
                outcome = Unknown(f"{why} during the attempt")
            else:
                outcome = Defer(job.claimed_at, f"{why} before the attempt started")
        except Exception as error:  # any exception of a handler is an outcome of its task
            outcome = raised(error)
        crash_point("sent")
        self._hand_in(AttemptResult(job.task, outcome, job.claimed_at, self._clock.monotonic() - began, job.content))
