"""The thresholds of the alert rules (settings table [alerts])."""

# ruff: noqa: RUF009 - `_threshold` is dataclasses.field with our metadata, not a value computed once
from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any


class ThresholdUnit(StrEnum):
    """The unit of a threshold."""

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
