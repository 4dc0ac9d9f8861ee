"""The rules: what is wrong from where on, for how long it must be so, and how bad it is. Data.

The same rules stand in deploy/prometheus/tidings.rules.yml, for whoever watches from outside: an engine that
is gone can raise nothing itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

WINDOW = timedelta(minutes=5)  # shares are counted over it
LATE = timedelta(seconds=60)
STALLED = timedelta(minutes=30)
LEAST = 10  # attempts below which a share says nothing
LEAST_ROOM = 256 << 20  # bytes under the database
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


_ALL = (
    Rule("scheduler_silent", Severity.CRITICAL, "silent_seconds", 300, "nobody looks for due messages"),
    Rule("overdue", Severity.WARNING, "overdue", 1000, "too many messages are overdue"),
    Rule("late", Severity.WARNING, "late_share", 0.10, "messages start late"),
    Rule("errors", Severity.WARNING, "error_share", 0.01, "attempts end in errors"),
    Rule("failures", Severity.WARNING, "failure_share", 0.10, "messages fail for good"),
    Rule("queue_deep", Severity.WARNING, "due", 10_000, "the queue is deep"),
    Rule("memory", Severity.WARNING, "memory_share", 0.80, "a worker's memory runs out", _A_MINUTE),
    Rule("run_missed", Severity.WARNING, "missed_runs", 0, "an expected run did not happen"),
    Rule("job_stalled", Severity.CRITICAL, "stalled_jobs", 0, "a migration job makes no progress"),
    Rule("channel_stopped", Severity.WARNING, "stopped_channels", 0, "a channel sends nothing", _A_MINUTE),
    Rule("errors_persist", Severity.WARNING, "stubborn", 0, "the other side fails again and again"),
    Rule("database_full", Severity.CRITICAL, "database_full", 0, "the database has no room"),
    Rule("database_slow", Severity.WARNING, "database_seconds", 1.0, "the database is slow", _A_MINUTE),
)

RULES = {rule.name: rule for rule in _ALL}
