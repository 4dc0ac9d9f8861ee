"""Optional sinks: StatsD, and OpenTelemetry if it is installed."""

from __future__ import annotations

from typing import Protocol

from ..model.errors import Misconfigured
from .events import Event


class MetricsSink(Protocol):
    """Counts events; may have resources to close."""

    def take(self, event: Event) -> None:
        """Count one event."""

    def close(self) -> None:
        """Send what is left, and close."""


def optional_sinks(*, statsd: tuple[str, int] | None = None, otel: bool = False) -> list[MetricsSink]:
    """Return the configured sinks. Raises Misconfigured if one cannot be created."""
    found: list[MetricsSink] = []
    if statsd is not None:
        from .statsd import StatsdSink

        try:
            found.append(StatsdSink(*statsd))
        except OSError as error:
            raise Misconfigured(
                f"the statsd host {statsd[0]!r} cannot be resolved ({error.strerror or error})",
                remedy="use a host that resolves on this machine, or its address",
                field="statsd",
            ) from None
    if otel:
        from .otel import OtelSink

        found.append(OtelSink())
    return found
