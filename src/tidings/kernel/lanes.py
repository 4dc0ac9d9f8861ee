"""Lanes: how the tasks of one queue are run. A channel, a source or a job is one lane each."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from ..model.task import OnUnknown
from ..model.time import MINUTE, SECOND, micros
from ..store.port import Step
from .breaker import BreakerRule
from .retry import POLICIES, RetryPolicy

STALE_SESSION = MINUTE  # a session that nobody has looked at for so long is not trusted


@dataclass(frozen=True, slots=True)
class Lane:
    """A queue with its rules; what must be shared by all nodes is also on the queue's row."""

    queue: str
    policy: RetryPolicy = POLICIES["default"]
    on_unknown: OnUnknown = OnUnknown.RESEND
    deadline: timedelta = timedelta(seconds=30)  # overall, for one attempt
    cap: int | None = None  # most attempts at once on one node; None = all its slots
    per_second: float | None = None
    keyed: bool = False  # each recipient has a rate, too: instants are reserved once the recipients are known
    breaker: BreakerRule = field(default_factory=BreakerRule)
    stop_on_failure: bool = False  # a failed task keeps its order key
    has_session: bool = False  # somebody looks at whether it is connected, and nothing starts while it is not

    marks_start: bool = field(init=False)  # it is written down before it acts, unless resending is safe
    patience: float = field(init=False)  # seconds until an attempt is cut off: its deadline and a little

    def __post_init__(self) -> None:
        object.__setattr__(self, "marks_start", self.on_unknown is not OnUnknown.RESEND)
        object.__setattr__(self, "patience", self.deadline.total_seconds() + 2)

    def join(self) -> list[Step]:
        """The statements that make this lane known to the database."""
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
        """The least time between two sends, in microseconds, that the rate limit allows."""
        return 1 if self.per_second is None else max(1, round(SECOND / self.per_second))

    def _link(self) -> Step:
        if self.has_session:
            return Step("channel_session_join", {"name": self.queue, "stale": STALE_SESSION})
        return Step("channel_session_drop", {"name": self.queue})
