"""Counters: which counters and timings an event adds to. Pure.

For sinks that push (StatsD, OpenTelemetry); `metrics` has the same names for Prometheus.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from . import events

NOT_ATTEMPTS = frozenset({"deferred", "released", "skipped", "offline"})
MANY_ATTEMPTS = 3  # attempts from which on a temporary error is counted as persistent
COUNTERS = (
    "messages_processed_total",
    "messages_succeeded_total",
    "messages_failed_total",
    "errors_by_category_total",
    "scheduled_messages_processed_total",
    "duplicate_detections_total",
    "scheduler_errors_total",
    "messages_expired_total",
    "messages_unknown_total",
    "persistent_errors_total",
    "nodes_lost_total",
    "database_rewinds_total",
    "authentication_failures_total",
)
TIMES = ("schedule_execution_lag_seconds", "processing_time_ms")


class CounterIncrement(NamedTuple):
    """An increment of one counter, with its label as name and value."""

    name: str
    n: int
    label: tuple[str, str] | None = None


def counter_increments(event: events.Event) -> Iterator[CounterIncrement]:
    """Return the increments for an event."""
    match event:
        case events.BatchSettled():
            yield from _settled(event)
        case events.ClaimLost():
            yield CounterIncrement("duplicate_detections_total", 1)
        case events.StoreError(where=where):
            yield CounterIncrement("scheduler_errors_total", 1, ("where", where))
        case events.TasksExpired(count=n):
            yield CounterIncrement("messages_expired_total", n)
        case events.TasksReaped(unknown=n) if n:
            yield CounterIncrement("messages_unknown_total", n)
        case events.DatabaseRewound(unknown=n):
            yield CounterIncrement("database_rewinds_total", 1)
            yield CounterIncrement("duplicate_detections_total", n)
            yield CounterIncrement("messages_unknown_total", n)
        case events.NodeLost():
            yield CounterIncrement("nodes_lost_total", 1)
        case events.AuthenticationFailed():
            yield CounterIncrement("authentication_failures_total", 1, ("reason", "wrong"))
        case events.AuthenticationLimited():
            yield CounterIncrement("authentication_failures_total", 1, ("reason", "limited"))
        case events.AttemptFailed(attempt=attempt, category="temporary") if attempt >= MANY_ATTEMPTS:
            yield CounterIncrement("persistent_errors_total", 1)


def timings(event: events.Event) -> Iterator[tuple[str, Sequence[float]]]:
    """Return the timings of an event: lags in seconds, attempts in milliseconds."""
    if isinstance(event, events.BatchSettled):
        yield "schedule_execution_lag_seconds", event.lags
        yield "processing_time_ms", event.times


def _settled(event: events.BatchSettled) -> Iterator[CounterIncrement]:
    attempts = succeeded = failed = 0
    for what, n in event.outcomes.items():
        kind, _, category = what.partition(":")
        if kind in NOT_ATTEMPTS:
            continue
        attempts += n
        succeeded += n if kind == "done" else 0
        failed += n if kind == "failed" else 0
        if category:
            yield CounterIncrement("errors_by_category_total", n, ("category", category))
    for name, n in (
        ("messages_processed_total", attempts),
        ("messages_succeeded_total", succeeded),
        ("messages_failed_total", failed),
        ("scheduled_messages_processed_total", len(event.lags)),
    ):
        if n:
            yield CounterIncrement(name, n)
