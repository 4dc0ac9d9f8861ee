"""The rules: what is wrong from where on, for how long it must be so, and how bad it is. Data.

`prometheus` writes the same rules for whoever watches from outside: an engine that is gone can raise nothing
itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from .settings import Thresholds

WINDOW = timedelta(minutes=5)  # shares are counted over it
LATE = timedelta(seconds=60)
LEAST = 10  # attempts below which a share says nothing
_AT_ONCE = timedelta(0)
_A_MINUTE = timedelta(minutes=1)


class Severity(StrEnum):
    """How bad it is."""

    WARNING = "warning"  # somebody should look today
    CRITICAL = "critical"  # somebody must look now


@dataclass(frozen=True, slots=True)
class Rule:
    """Raised when its figure has been over the threshold for `hold`; resolved when it no longer is."""

    name: str
    severity: Severity
    figure: str
    over: float
    title: str
    hold: timedelta = _AT_ONCE

    @property
    def runbook(self) -> str:
        """The page that says what to do, as the documentation calls it."""
        return f"how-to/runbooks/{self.name.replace('_', '-')}.md"


def rules_of(limits: Thresholds) -> dict[str, Rule]:
    """Every rule by its name, with these thresholds."""
    warning, critical = Severity.WARNING, Severity.CRITICAL
    silent, slow = limits.scheduler_silent.total_seconds(), limits.database_slow.total_seconds()
    rules = (
        Rule("scheduler_silent", critical, "silent_seconds", silent, "nobody looks for due messages"),
        Rule("overdue", warning, "overdue", limits.overdue, "too many messages are overdue"),
        Rule("late", warning, "late_share", limits.late, "messages start late"),
        Rule("errors", warning, "error_share", limits.errors, "attempts end in errors"),
        Rule("failures", warning, "failure_share", limits.failures, "messages fail for good"),
        Rule("queue_deep", warning, "due", limits.queue_deep, "the queue is deep"),
        Rule("memory", warning, "memory_share", limits.memory, "a worker's memory runs out", _A_MINUTE),
        Rule("run_missed", warning, "missed_runs", 0, "an expected run did not happen"),
        Rule("job_stalled", critical, "stalled_jobs", 0, "a migration job makes no progress"),
        Rule("channel_stopped", warning, "stopped_channels", 0, "a channel sends nothing", _A_MINUTE),
        Rule("errors_persist", warning, "stubborn", 0, "the other side fails again and again"),
        Rule("database_full", critical, "database_full", 0, "the database has no room"),
        Rule("database_rewound", critical, "rewinds", 0, "the database has gone back"),
        Rule("database_slow", warning, "database_seconds", slow, "the database is slow", _A_MINUTE),
    )
    return {rule.name: rule for rule in rules}


RULES = rules_of(Thresholds())
