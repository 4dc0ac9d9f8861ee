"""Counters: which counters and timings an event adds to. Pure.

All sinks use these names: Prometheus with the prefix `tidings_`, StatsD and OpenTelemetry with `tidings.`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from . import events

NOT_ATTEMPTS = frozenset({"deferred", "released", "skipped", "offline"})
TENANT_OUTCOMES = {"done": "succeeded", "failed": "failed", "unknown": "unknown"}  # others: retried
MAX_TENANTS = 50  # tenants with a label of their own, per process
OTHER_TENANTS = "other"
_COUNTED_KINDS = {
    "done": "messages_succeeded_total",
    "failed": "messages_failed_total",
    "unknown": "messages_unknown_total",
}
MANY_ATTEMPTS = 3  # attempts from which on a temporary error is counted as persistent
COUNTERS: Mapping[str, tuple[str, ...]] = {  # help text and labels by name
    "messages_processed_total": ("Attempts whose results were stored.",),
    "messages_succeeded_total": ("Attempts that succeeded.",),
    "messages_failed_total": ("Messages that failed permanently.",),
    "errors_by_category_total": ("Attempts that failed.", "category"),
    "scheduled_messages_processed_total": ("Messages started at their due time.",),
    "duplicate_detections_total": ("Messages that may have been sent twice.",),
    "scheduler_errors_total": ("Failed steps and database errors.", "where"),
    "messages_expired_total": ("Messages that expired.",),
    "messages_unknown_total": ("Attempts whose outcome is unknown: a lost answer, a crash or a database rewind.",),
    "persistent_errors_total": ("Temporary errors at the third or a later attempt.",),
    "nodes_lost_total": ("Processes declared dead.",),
    "database_rewinds_total": ("Detected losses of committed data (rewinds).",),
    "authentication_failures_total": ("Rejected keys.", "reason"),
    "retries_total": ("Attempts that failed and will be repeated.", "category"),
    "tenant_attempts_total": ("Attempts by tenant: succeeded, retried, failed or unknown.", "tenant", "outcome"),
    "transport_attempts_total": ("Attempts made by this transport; its dispatcher counts their results.",),
}
TIMES: Mapping[str, str] = {  # help text by name
    "schedule_execution_lag_seconds": "Seconds from due to started, of first attempts.",
    "processing_time_seconds": "Seconds per attempt.",
}


class CounterIncrement(NamedTuple):
    """An increment of one counter, with the values of its labels."""

    name: str
    n: int
    labels: tuple[str, ...] = ()


class EventCounter:
    """Turns events into increments. Names the first tenants that it sees, and counts the others as `other`."""

    def __init__(self) -> None:
        self._tenants: set[str] = set()

    def increments(self, event: events.Event) -> Iterator[CounterIncrement]:
        """Return the increments for an event."""
        match event:
            case events.BatchSettled():
                yield from _settled(event)
                for (tenant, what), n in event.tenants.items():
                    kind = what.partition(":")[0]
                    if kind not in NOT_ATTEMPTS:
                        labels = (self._label(tenant), TENANT_OUTCOMES.get(kind, "retried"))
                        yield CounterIncrement("tenant_attempts_total", n, labels)
            case events.ClaimLost():
                yield CounterIncrement("duplicate_detections_total", 1)
            case events.StoreError(where=where):
                yield CounterIncrement("scheduler_errors_total", 1, (where,))
            case events.TasksExpired(count=n):
                yield CounterIncrement("messages_expired_total", n)
            case events.TasksReaped(unknown=n) | events.TasksRecovered(unknown=n) | events.TransportLost(unknown=n) if (
                n
            ):
                yield CounterIncrement("messages_unknown_total", n)
            case events.DatabaseRewound(unknown=n):
                yield CounterIncrement("database_rewinds_total", 1)
                yield CounterIncrement("duplicate_detections_total", n)
                yield CounterIncrement("messages_unknown_total", n)
            case events.TransportAttempts(count=n):
                yield CounterIncrement("transport_attempts_total", n)
            case events.NodeLost():
                yield CounterIncrement("nodes_lost_total", 1)
            case events.AuthenticationFailed():
                yield CounterIncrement("authentication_failures_total", 1, ("wrong",))
            case events.AuthenticationLimited():
                yield CounterIncrement("authentication_failures_total", 1, ("limited",))
            case events.AttemptFailed(attempt=attempt, category="temporary") if attempt >= MANY_ATTEMPTS:
                yield CounterIncrement("persistent_errors_total", 1)

    def _label(self, tenant: str) -> str:
        if tenant not in self._tenants and len(self._tenants) >= MAX_TENANTS:
            return OTHER_TENANTS
        self._tenants.add(tenant)
        return tenant


def timings(event: events.Event) -> Iterator[tuple[str, Sequence[float]]]:
    """Return the timings of an event, in seconds."""
    if isinstance(event, events.BatchSettled):
        yield "schedule_execution_lag_seconds", event.lags
        yield "processing_time_seconds", event.times


def _settled(event: events.BatchSettled) -> Iterator[CounterIncrement]:
    sums: Counter[str] = Counter({"scheduled_messages_processed_total": len(event.lags)})
    for what, n in event.outcomes.items():
        kind, _, category = what.partition(":")
        if kind in NOT_ATTEMPTS:
            continue
        sums["messages_processed_total"] += n
        if kind in _COUNTED_KINDS:
            sums[_COUNTED_KINDS[kind]] += n
        if category:
            yield CounterIncrement("errors_by_category_total", n, (category,))
            if kind != "failed":
                yield CounterIncrement("retries_total", n, (category,))
    yield from (CounterIncrement(name, n) for name, n in sums.items() if n)
