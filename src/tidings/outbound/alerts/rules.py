"""The alert rules: threshold, hold time and severity, as data.

`prometheus_rules` exports them for external monitoring, because a stopped engine cannot raise alerts.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from .thresholds import AlertThresholds

WINDOW = timedelta(minutes=5)  # the period of rates
LATE_AFTER = timedelta(seconds=60)
MIN_ATTEMPTS = 10  # minimum for a meaningful rate
_NO_HOLD = timedelta(0)
_A_MINUTE = timedelta(minutes=1)


class AlertSeverity(StrEnum):
    """The severity of an alert."""

    WARNING = "warning"  # needs attention today
    CRITICAL = "critical"  # needs attention now


@dataclass(frozen=True, slots=True)
class AlertRule:
    """Raised when its measurement exceeds `over` for `hold`; resolved when it no longer does."""

    name: str
    severity: AlertSeverity
    figure: str
    over: float
    title: str
    hold: timedelta = _NO_HOLD

    @property
    def runbook(self) -> str:
        """The path of its runbook in the documentation."""
        return f"how-to/runbooks/{self.name.replace('_', '-')}.md"


def build_rules(limits: AlertThresholds) -> dict[str, AlertRule]:
    """All rules by name, with these thresholds."""
    warning, critical = AlertSeverity.WARNING, AlertSeverity.CRITICAL
    silent, slow = limits.scheduler_silent.total_seconds(), limits.database_slow.total_seconds()
    rules = (
        AlertRule("scheduler_silent", critical, "silent_seconds", silent, "no process polls for due messages"),
        AlertRule("overdue", warning, "overdue", limits.overdue, "too many messages are overdue"),
        AlertRule("late", warning, "late_share", limits.late, "messages start late"),
        AlertRule("errors", warning, "error_share", limits.errors, "too many attempts end in errors"),
        AlertRule("failures", warning, "failure_share", limits.failures, "too many messages fail permanently"),
        AlertRule("queue_deep", warning, "due", limits.queue_deep, "the queue is deep"),
        AlertRule("memory", warning, "memory_share", limits.memory, "a worker is running out of memory", _A_MINUTE),
        AlertRule("run_missed", warning, "missed_runs", 0, "a scheduled run was missed"),
        AlertRule("job_stalled", critical, "stalled_jobs", 0, "a migration job makes no progress"),
        AlertRule("channel_stopped", warning, "stopped_channels", 0, "a channel sends nothing", _A_MINUTE),
        AlertRule("errors_persist", warning, "persistent", 0, "temporary errors persist"),
        AlertRule("database_full", critical, "database_full", 0, "the database is full"),
        AlertRule("database_rewound", critical, "rewinds", 0, "the database was restored to an earlier state"),
        AlertRule("database_slow", warning, "database_seconds", slow, "the database is slow", _A_MINUTE),
    )
    return {rule.name: rule for rule in rules}


RULES = build_rules(AlertThresholds())
