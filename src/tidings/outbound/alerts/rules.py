"""The alert rules: threshold (settings table [alerts]), hold time and severity, as data.

`prometheus_rules` exports them for external monitoring, because a stopped engine cannot raise alerts.
"""

# ruff: noqa: RUF009 - `_threshold` is dataclasses.field with our metadata, not a value computed once
from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any

WINDOW = timedelta(minutes=5)  # the period of rates
LATE_AFTER = timedelta(seconds=60)
MIN_ATTEMPTS = 10  # minimum for a meaningful rate
_NO_HOLD = timedelta(0)
_A_MINUTE = timedelta(minutes=1)


class ThresholdUnit(StrEnum):
    LENGTH = "length"
    COUNT = "count"
    SHARE = "share"
    SIZE = "size"


def _threshold(default: object, unit: ThresholdUnit, about: str) -> Any:
    return field(default=default, metadata={"unit": unit, "about": about})


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertThresholds:
    """The table [alerts]: a threshold per rule that has one, by rule name."""

    scheduler_silent: timedelta = _threshold(
        timedelta(minutes=5), ThresholdUnit.LENGTH, "time since any process polled for due messages"
    )
    overdue: int = _threshold(1000, ThresholdUnit.COUNT, "messages that are overdue by over 60 s")
    late: float = _threshold(0.10, ThresholdUnit.SHARE, "share of first attempts that started over 60 s late")
    errors: float = _threshold(0.01, ThresholdUnit.SHARE, "share of failed attempts")
    failures: float = _threshold(0.10, ThresholdUnit.SHARE, "share of messages that failed permanently")
    queue_deep: int = _threshold(10_000, ThresholdUnit.COUNT, "messages that are due")
    memory: float = _threshold(0.80, ThresholdUnit.SHARE, "share of its memory that a process uses")
    job_stalled: timedelta = _threshold(
        timedelta(minutes=30), ThresholdUnit.LENGTH, "time without progress of a migration job"
    )
    database_full: int = _threshold(256 << 20, ThresholdUnit.SIZE, "minimum free space under the database file")
    database_slow: timedelta = _threshold(timedelta(seconds=1), ThresholdUnit.LENGTH, "time for a small write")


class AlertSeverity(StrEnum):
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
        """The topic of its runbook (`tidings docs`)."""
        return f"runbooks/{self.name.replace('_', '-')}"


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
