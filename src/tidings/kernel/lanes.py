"""Lanes: how the tasks of one queue are run. A channel, a source or a job is one lane each."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from ..model.task import OnUnknown
from ..model.time import SECOND, micros
from ..store.port import Step
from .breaker import BreakerRule
from .retry import POLICIES, Policy


@dataclass(frozen=True, slots=True)
class Lane:
    """A queue with its rules; what must be shared by all nodes is also on the queue's row."""

    queue: str
    policy: Policy = POLICIES["companion"]
    on_unknown: OnUnknown = OnUnknown.RESEND
    deadline: timedelta = timedelta(seconds=30)  # overall, for one attempt
    cap: int | None = None  # most attempts at once on one node; None = all its slots
    per_second: float | None = None
    breaker: BreakerRule = field(default_factory=BreakerRule)
    stop_on_failure: bool = False  # a failed task keeps its order key

    @property
    def marks_start(self) -> bool:
        """Whether an attempt is written down before it acts: always, unless resending is safe."""
        return self.on_unknown is not OnUnknown.RESEND

    def join(self) -> list[Step]:
        """The statements that make this lane known to the database."""
        known = {
            "name": self.queue,
            "on_unknown": self.on_unknown.value,
            "deadline": micros(self.deadline),
            "stop_on_failure": self.stop_on_failure,
        }
        if self.per_second is None:
            return [Step("queue_join", known), Step("limit_drop", {"queue": self.queue})]
        interval = max(1, round(SECOND / self.per_second))
        return [Step("queue_join", known), Step("limit_join", {"queue": self.queue, "interval": interval})]
