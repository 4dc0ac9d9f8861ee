"""Sinks that only some want: StatsD, and OpenTelemetry where it is installed."""

from __future__ import annotations

from typing import Protocol

from ..model.errors import Misconfigured
from .events import Event


class MetricsSink(Protocol):
    """Takes facts, and may have something to let go of."""

    def take(self, event: Event) -> None:
        """Count one fact."""

    def close(self) -> None:
        """Send what is left, and let go."""


def optional_sinks(*, statsd: tuple[str, int] | None = None, otel: bool = False) -> list[MetricsSink]:
    """Those that are wanted; refuses what cannot be had."""
    found: list[MetricsSink] = []
    if statsd is not None:
        from .statsd import StatsdSink

        try:
            found.append(StatsdSink(*statsd))
        except OSError as error:
            raise Misconfigured(
                f"statsd names {statsd[0]!r}, which cannot be found ({error.strerror or error})",
                remedy="use a host that is known here, or its address",
                field="statsd",
            ) from None
    if otel:
        from .otel import OtelSink

        found.append(OtelSink())
    return found
