"""Lanes: the rules for the tasks of one queue. Each channel, source and job has a lane."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from ..model.task import OnUnknown
from ..model.time import MINUTE, SECOND, micros
from ..store.port import Step
from .breaker import BreakerRule
from .retry import POLICIES, RetryPolicy

STALE_SESSION = MINUTE  # an older session state is not trusted


@dataclass(frozen=True, slots=True)
class Lane:
    """A queue with its rules. What all nodes must share is also in the queue's row."""

    queue: str
    policy: RetryPolicy = POLICIES["default"]
    on_unknown: OnUnknown = OnUnknown.RESEND
    deadline: timedelta = timedelta(seconds=30)  # of one attempt
    concurrency: int | None = None  # concurrent attempts on one node; None: no limit besides the node's slots
    per_second: float | None = None
    keyed: bool = False  # recipients have rate limits, too: slots are reserved once they are known
    breaker: BreakerRule = field(default_factory=BreakerRule)
    stop_on_failure: bool = False  # a failed task blocks its ordering key
    has_session: bool = False  # a session monitor reports its state; nothing starts while it is disconnected

    marks_start: bool = field(init=False)  # write a start mark before sending, unless resending is safe
    patience: float = field(init=False)  # seconds until an attempt is cancelled: its deadline and a margin

    def __post_init__(self) -> None:
        object.__setattr__(self, "marks_start", self.on_unknown is not OnUnknown.RESEND)
        object.__setattr__(self, "patience", self.deadline.total_seconds() + 2)

    def join(self) -> list[Step]:
        """Return the statements that register this lane in the database."""
        known = {
            "name": self.queue,
            "on_unknown": self.on_unknown.value,
            "deadline": micros(self.deadline),
            "stop_on_failure": self.stop_on_failure,
        }
        return [Step("queue_join", known), self._rate(), self._link()]

    def _rate(self) -> Step:
        if self.per_second is None:
            return Step("rate_limit_drop", {"queue": self.queue})
        return Step("rate_limit_join", {"queue": self.queue, "interval": self.interval})

    @property
    def interval(self) -> int:
        """The minimum interval between two sends in microseconds."""
        return 1 if self.per_second is None else max(1, round(SECOND / self.per_second))

    def _link(self) -> Step:
        if self.has_session:
            return Step("channel_session_join", {"name": self.queue, "stale": STALE_SESSION})
        return Step("channel_session_drop", {"name": self.queue})
