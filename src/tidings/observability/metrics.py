"""Metrics: what this process did, counted per batch, in Prometheus' form.

A batch costs little more than its buckets. Names are those of the requirements; labels have few values.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, disable_created_metrics
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from . import events

disable_created_metrics()  # type: ignore[no-untyped-call]
CONTENT_TYPE = CONTENT_TYPE_LATEST
LAGS = (0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0)  # seconds
TIMES = (1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0, 5000.0, 10_000.0, 30_000.0)
_NOT_ATTEMPTS = frozenset({"deferred", "given_back", "skipped", "offline"})


class Tally(Collector):
    """A histogram that takes a whole batch at a time."""

    def __init__(self, name: str, about: str, bounds: Sequence[float]) -> None:
        self._name, self._about, self._bounds = name, about, bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def add(self, values: Sequence[float]) -> None:
        """Count these."""
        counts, bounds = self._counts, self._bounds
        for value in values:
            counts[bisect_left(bounds, value)] += 1
        self._sum += sum(values)

    def collect(self) -> list[Metric]:
        """As the exposition wants it: each bucket counts all below it."""
        family = HistogramMetricFamily(self._name, self._about)
        total, buckets = 0, []
        for bound, count in zip([*map(str, self._bounds), "+Inf"], self._counts, strict=True):
            total += count
            buckets.append((bound, total))
        family.add_metric([], buckets, self._sum)
        return [family]


class Metrics:
    """A sink of events, and what it has counted so far."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()

        def counter(name: str, about: str, *labels: str) -> Counter:
            return Counter(name, about, labels, registry=registry)

        self._processed = counter("messages_processed", "Attempts that were written down.")
        self._succeeded = counter("messages_succeeded", "Attempts that did it.")
        self._failed = counter("messages_failed", "Messages that failed for good.")
        self._errors = counter("errors_by_category", "Attempts that did not do it.", "category")
        self._scheduled = counter("scheduled_messages_processed", "Messages that were started when due.")
        self._duplicates = counter("duplicate_detections", "Results that came after their claim had gone.")
        self._trouble = counter("scheduler_errors", "Times that the database did not answer.", "where")
        self._expired = counter("messages_expired", "Messages whose time ran out.")
        self._in_doubt = counter("messages_in_doubt", "Messages that a dead process may have sent.")
        self._stubborn = counter("stubborn_errors", "Third and later tries that met the same trouble.")
        self._wrong_keys = counter("authentication_failures", "Keys that were refused.", "reason")
        self._nodes_lost = counter("nodes_lost", "Processes that were given up.")
        self._lag = Tally("schedule_execution_lag_seconds", "From due to started.", LAGS)
        self._time = Tally("processing_time_ms", "How long an attempt took.", TIMES)
        for own in (self._lag, self._time):
            registry.register(own)
        self._stopped = Gauge("channel_stopped", "1 while it sends nothing.", ["channel"], registry=registry)
        self._gauges: dict[str, Gauge] = {}
        self._takes: Mapping[type[events.Event], Callable[[Any], None]] = {
            events.BatchSettled: self._settled,
            events.ClaimLost: lambda _event: self._duplicates.inc(),
            events.StoreTrouble: lambda event: self._trouble.labels(event.where).inc(),
            events.TasksExpired: lambda event: self._expired.inc(event.count),
            events.TasksReaped: lambda event: self._in_doubt.inc(event.in_doubt),
            events.AttemptFailed: self._met_again,
            events.AuthenticationFailed: lambda _event: self._wrong_keys.labels("wrong").inc(),
            events.AuthenticationLimited: lambda _event: self._wrong_keys.labels("limited").inc(),
            events.NodeLost: lambda _event: self._nodes_lost.inc(),
            events.ChannelStopped: lambda event: self._stopped.labels(event.queue).set(1),
            events.ChannelResumed: lambda event: self._stopped.labels(event.queue).set(0),
        }

    def take(self, event: events.Event) -> None:
        """Count one fact."""
        count = self._takes.get(type(event))
        if count is not None:
            count(event)

    def gauge(self, name: str, about: str, values: Mapping[tuple[str, ...], float], *labels: str) -> None:
        """What stands in the database just now; what is not named any more is forgotten."""
        if name not in self._gauges:
            self._gauges[name] = Gauge(name, about, labels, registry=self._registry)
        gauge = self._gauges[name]
        gauge.clear()
        for chosen, value in values.items():
            (gauge.labels(*chosen) if labels else gauge).set(value)

    def text(self) -> bytes:
        """Everything, as Prometheus reads it."""
        return generate_latest(self._registry)

    def _met_again(self, event: events.AttemptFailed) -> None:
        if event.attempt >= 3 and event.category == "temporary":
            self._stubborn.inc()

    def _settled(self, event: events.BatchSettled) -> None:
        attempts = succeeded = failed = 0
        for what, count in event.outcomes.items():
            kind, _, category = what.partition(":")
            if kind in _NOT_ATTEMPTS:
                continue
            attempts += count
            succeeded += count if kind == "done" else 0
            failed += count if kind == "failed" else 0
            if category:
                self._errors.labels(category).inc(count)
        self._processed.inc(attempts)
        self._succeeded.inc(succeeded)
        self._failed.inc(failed)
        self._scheduled.inc(len(event.lags))
        self._lag.add(event.lags)
        self._time.add(event.times)
