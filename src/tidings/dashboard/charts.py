"""Data points of the small charts on the overview. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..model.time import MINUTE
from ..outbound.trend_sampler import TREND_WINDOW, ThroughputTrend

WIDTH, HEIGHT = 300, 48


class Chart(NamedTuple):
    """The current value of a metric and its last 15 minutes."""

    name: str
    figure: str
    about: str  # text alternative for screen readers
    tone: str = "calm"
    line: str = ""  # points of a polyline
    bars: Sequence[tuple[float, float, float]] = ()  # x, y, height


def charts(trend: ThroughputTrend) -> list[Chart]:
    """Return the charts of due messages, lag, send rate and success rate, in this order."""
    places = [(sample.at - trend.now + TREND_WINDOW) / TREND_WINDOW * WIDTH for sample in trend.samples]
    due = [float(sample.due) for sample in trend.samples]
    lag = [sample.lag for sample in trend.samples]
    sent = [minute.sent for minute in trend.minutes]
    shares = [minute.sent / minute.attempts if minute.attempts else 0 for minute in trend.minutes]
    success = trend.success
    return [
        Chart(
            "due now",
            f"{trend.samples[-1].due:,}",
            f"messages due, at most {max(due):,.0f} in the last 15 minutes",
            line=line(places, due),
        ),
        Chart(
            "lag",
            format_seconds(lag[-1]),
            f"age of the oldest due message, at most {format_seconds(max(lag))} in the last 15 minutes",
            "warn" if lag[-1] >= 60 else "calm",
            line(places, lag, least=1.0),
        ),
        Chart(
            "sent per minute",
            f"{trend.rate:,.0f}",
            f"messages sent, at most {max(sent):,} per minute in the last 15 minutes",
            "good",
            bars=bars(sent),
        ),
        Chart(
            "success",
            "–" if success is None else f"{success:.1%}".replace(".0%", "%"),
            "share of successful attempts in each of the last 15 minutes",
            "good" if success is None or success >= 0.9 else "bad",
            bars=bars(shares, most=1.0),
        ),
    ]


def line(places: Sequence[float], values: Sequence[float], *, least: float = 10.0) -> str:
    """Return the points of a polyline, scaled to the highest value but at least to `least`."""
    top = max(least, *values)
    points = (
        f"{min(max(x, 0.0), WIDTH):.1f},{HEIGHT - 2 - (HEIGHT - 4) * value / top:.1f}"
        for x, value in zip(places, values, strict=True)
    )
    return " ".join(points)


def bars(values: Sequence[float], *, most: float | None = None) -> list[tuple[float, float, float]]:
    """Return one bar per value, scaled to `most` or to the highest value."""
    top = most or max(1, *values)
    step = WIDTH / max(len(values), TREND_WINDOW // MINUTE)
    return [
        (round(number * step, 1), round(HEIGHT * (1 - value / top), 1), round(HEIGHT * value / top, 1))
        for number, value in enumerate(values)
    ]


def format_seconds(seconds: float) -> str:
    """Format a duration with one unit."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"
