"""The rules: what is wrong from where on, for how long it must be so, and how bad it is. Data.

`prometheus` writes the same rules for whoever watches from outside: an engine that is gone can raise nothing
itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from .thresholds import AlertThresholds

WINDOW = timedelta(minutes=5)  # shares are counted over it
LATE_AFTER = timedelta(seconds=60)
MIN_ATTEMPTS = 10  # attempts below which a share says nothing
_AT_ONCE = timedelta(0)
_A_MINUTE = timedelta(minutes=1)


class AlertSeverity(StrEnum):
    """How bad it is."""

    WARNING = "warning"  # somebody should look today
    CRITICAL = "critical"  # somebody must look now


@dataclass(frozen=True, slots=True)
class AlertRule:
    """Raised when its figure has been over the threshold for `hold`; resolved when it no longer is."""

    name: str
    severity: AlertSeverity
    figure: str
    over: float
    title: str
    hold: timedelta = _AT_ONCE

    @property
    def runbook(self) -> str:
        """The page that says what to do, as the documentation calls it."""
        return f"how-to/runbooks/{self.name.replace('_', '-')}.md"


def build_rules(limits: AlertThresholds) -> dict[str, AlertRule]:
    """Every rule by its name, with these thresholds."""
    warning, critical = AlertSeverity.WARNING, AlertSeverity.CRITICAL
    silent, slow = limits.scheduler_silent.total_seconds(), limits.database_slow.total_seconds()
    rules = (
        AlertRule("scheduler_silent", critical, "silent_seconds", silent, "nobody looks for due messages"),
        AlertRule("overdue", warning, "overdue", limits.overdue, "too many messages are overdue"),
        AlertRule("late", warning, "late_share", limits.late, "messages start late"),
        AlertRule("errors", warning, "error_share", limits.errors, "attempts end in errors"),
        AlertRule("failures", warning, "failure_share", limits.failures, "messages fail for good"),
        AlertRule("queue_deep", warning, "due", limits.queue_deep, "the queue is deep"),
        AlertRule("memory", warning, "memory_share", limits.memory, "a worker's memory runs out", _A_MINUTE),
        AlertRule("run_missed", warning, "missed_runs", 0, "an expected run did not happen"),
        AlertRule("job_stalled", critical, "stalled_jobs", 0, "a migration job makes no progress"),
        AlertRule("channel_stopped", warning, "stopped_channels", 0, "a channel sends nothing", _A_MINUTE),
        AlertRule("errors_persist", warning, "stubborn", 0, "the other side fails again and again"),
        AlertRule("database_full", critical, "database_full", 0, "the database has no room"),
        AlertRule("database_rewound", critical, "rewinds", 0, "the database has gone back"),
        AlertRule("database_slow", warning, "database_seconds", slow, "the database is slow", _A_MINUTE),
    )
    return {rule.name: rule for rule in rules}


RULES = build_rules(AlertThresholds())
