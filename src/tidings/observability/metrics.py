"""Prometheus metrics of this process, counted per batch.

A batch costs little more than its buckets. All names have the prefix `tidings_`; labels have few values.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, ProcessCollector, disable_created_metrics
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from . import events
from .counters import COUNTERS, TIMES, EventCounter, timings

disable_created_metrics()  # type: ignore[no-untyped-call]
CONTENT_TYPE = CONTENT_TYPE_LATEST
PREFIX = "tidings_"
LAG_BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0)  # seconds
DURATION_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # seconds
BUCKETS = {"schedule_execution_lag_seconds": LAG_BUCKETS, "processing_time_seconds": DURATION_BUCKETS}


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
        self._counting = EventCounter()
        self._counters = {
            name: Counter(PREFIX + name, about, labels, registry=registry)
            for name, (about, *labels) in COUNTERS.items()
        }
        self._times = {name: BatchHistogram(PREFIX + name, about, BUCKETS[name]) for name, about in TIMES.items()}
        for histogram in self._times.values():
            registry.register(histogram)
        ProcessCollector(namespace=PREFIX.rstrip("_"), registry=registry)  # CPU, memory, open files of this process
        self._stopped = Gauge(
            f"{PREFIX}channel_stopped", "1 while the channel sends nothing.", ["channel"], registry=registry
        )
        self._gauges: dict[str, Gauge] = {}

    def take(self, event: events.Event) -> None:
        """Count one event."""
        for name, n, labels in self._counting.increments(event):
            own = self._counters[name]
            (own.labels(*labels) if labels else own).inc(n)
        for name, values in timings(event):
            self._times[name].add(values)
        if isinstance(event, events.ChannelStopped | events.ChannelResumed):
            self._stopped.labels(event.queue).set(isinstance(event, events.ChannelStopped))

    def gauge(self, name: str, about: str, values: Mapping[tuple[str, ...], float], *labels: str) -> None:
        """Replace a gauge's values; labels that are no longer present are removed."""
        if name not in self._gauges:
            self._gauges[name] = Gauge(PREFIX + name, about, labels, registry=self._registry)
        gauge = self._gauges[name]
        gauge.clear()
        for chosen, value in values.items():
            (gauge.labels(*chosen) if labels else gauge).set(value)

    def forget_gauges(self) -> None:
        """Remove the gauges' values: they could not be read."""
        while self._gauges:
            self._registry.unregister(self._gauges.popitem()[1])

    def gauges(self) -> Iterator[tuple[str, tuple[str, ...], float]]:
        """Return name, label values and value of each gauge, without the prefix."""
        for family in self._registry.collect():
            if family.type == "gauge":
                for sample in family.samples:
                    yield sample.name.removeprefix(PREFIX), tuple(sample.labels.values()), sample.value

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self._registry)
