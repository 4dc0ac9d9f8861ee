"""Prometheus metrics of this process, counted per batch.

A batch costs little more than its buckets. Required names stay as they are; labels have few values.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, disable_created_metrics
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from . import events
from .counters import counter_increments, timings

disable_created_metrics()  # type: ignore[no-untyped-call]
CONTENT_TYPE = CONTENT_TYPE_LATEST
LAG_BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0)  # seconds
DURATION_BUCKETS = (1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0, 5000.0, 10_000.0, 30_000.0)
_COUNTERS = (
    ("messages_processed", "Attempts whose results were stored."),
    ("messages_succeeded", "Attempts that succeeded."),
    ("messages_failed", "Messages that failed permanently."),
    ("errors_by_category", "Attempts that failed.", "category"),
    ("scheduled_messages_processed", "Messages started at their due time."),
    ("duplicate_detections", "Messages that may have been sent twice."),
    ("scheduler_errors", "Failed steps and database errors.", "where"),
    ("messages_expired", "Messages that expired."),
    ("messages_unknown", "Messages with an unknown outcome after a crash or database rewind."),
    ("persistent_errors", "Temporary errors at the third or a later attempt."),
    ("authentication_failures", "Rejected keys.", "reason"),
    ("nodes_lost", "Processes declared dead."),
    ("database_rewinds", "Detected losses of committed data (rewinds)."),
)


class BatchHistogram(Collector):
    """A histogram that takes a batch of values at a time."""

    def __init__(self, name: str, about: str, bounds: Sequence[float]) -> None:
        self._name, self._about, self._bounds = name, about, bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def add(self, values: Sequence[float]) -> None:
        """Add these values."""
        counts, bounds = self._counts, self._bounds
        for value in values:
            counts[bisect_left(bounds, value)] += 1
        self._sum += sum(values)

    def collect(self) -> list[Metric]:
        """Return cumulative buckets, as the exposition format requires."""
        family = HistogramMetricFamily(self._name, self._about)
        total, buckets = 0, []
        for bound, count in zip([*map(str, self._bounds), "+Inf"], self._counts, strict=True):
            total += count
            buckets.append((bound, total))
        family.add_metric([], buckets, self._sum)
        return [family]


class Metrics:
    """A sink of events, and its counters."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()

        def counter(name: str, about: str, *labels: str) -> Counter:
            return Counter(name, about, labels, registry=registry)

        self._counters = {f"{name}_total": counter(name, *about) for name, *about in _COUNTERS}
        self._tallies = {
            "schedule_execution_lag_seconds": BatchHistogram(
                "schedule_execution_lag_seconds", "Seconds from due to started.", LAG_BUCKETS
            ),
            "processing_time_ms": BatchHistogram("processing_time_ms", "Milliseconds per attempt.", DURATION_BUCKETS),
        }
        for own in self._tallies.values():
            registry.register(own)
        self._stopped = Gauge("channel_stopped", "1 while the channel sends nothing.", ["channel"], registry=registry)
        self._gauges: dict[str, Gauge] = {}

    def take(self, event: events.Event) -> None:
        """Count one event."""
        for name, n, label in counter_increments(event):
            own = self._counters[name]
            (own if label is None else own.labels(label[1])).inc(n)
        for name, values in timings(event):
            self._tallies[name].add(values)
        if isinstance(event, events.ChannelStopped | events.ChannelResumed):
            self._stopped.labels(event.queue).set(isinstance(event, events.ChannelStopped))

    def gauge(self, name: str, about: str, values: Mapping[tuple[str, ...], float], *labels: str) -> None:
        """Replace a gauge's values; labels that are no longer present are removed."""
        if name not in self._gauges:
            self._gauges[name] = Gauge(name, about, labels, registry=self._registry)
        gauge = self._gauges[name]
        gauge.clear()
        for chosen, value in values.items():
            (gauge.labels(*chosen) if labels else gauge).set(value)

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self._registry)
