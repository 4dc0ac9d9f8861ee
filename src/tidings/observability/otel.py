"""The OpenTelemetry sink: counters and histograms through its SDK, which batches and exports.

Optional (`tidings[otel]`). The standard variables configure it (OTEL_EXPORTER_OTLP_ENDPOINT,
OTEL_METRIC_EXPORT_INTERVAL and others).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import __version__
from ..model.errors import Misconfigured
from . import counters
from .events import Event

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricReader

PREFIX = "tidings"


class OtelSink:
    """Counts events in the instruments of its own meter."""

    def __init__(self, reader: MetricReader | None = None) -> None:
        self._counting = counters.EventCounter()
        provider = self._provider = _provider(reader)
        meter = provider.get_meter("tidings", __version__)
        self._counters: dict[str, Any] = {
            name: meter.create_counter(f"{PREFIX}.{name.removesuffix('_total')}") for name in counters.COUNTERS
        }
        self._times: dict[str, Any] = {
            name: meter.create_histogram(f"{PREFIX}.{name.removesuffix('_seconds')}", unit="s")
            for name in counters.TIMES
        }

    def take(self, event: Event) -> None:
        """Count one event."""
        for name, n, labels in self._counting.increments(event):
            self._counters[name].add(n, dict(zip(counters.COUNTERS[name][1:], labels, strict=True)))
        for name, values in counters.timings(event):
            record = self._times[name].record
            for value in values:
                record(value)

    def close(self) -> None:
        """Export what is left, and shut down."""
        self._provider.shutdown(timeout_millis=2000)


def _provider(reader: MetricReader | None) -> Any:
    try:
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.resources import Resource

        if reader is None:
            from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
            from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

            reader = PeriodicExportingMetricReader(OTLPMetricExporter())
    except ImportError as error:
        raise Misconfigured(
            "otel is true, but OpenTelemetry is not installed",
            remedy="pip install 'tidings[otel]', or set otel = false",
            field="otel",
        ) from error
    named = Resource.create({"service.name": "tidings", "service.version": __version__})
    return MeterProvider([reader], resource=named)
