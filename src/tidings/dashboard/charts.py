"""Charts: series of numbers as the points of a small picture. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..model.time import MINUTE
from ..outbound.trend_sampler import TREND_WINDOW, ThroughputTrend

WIDTH, HEIGHT = 300, 48


class Chart(NamedTuple):
    """One figure with the quarter of an hour behind it."""

    name: str
    figure: str
    about: str  # what the picture shows, for who cannot see it
    line: str  # points of a line, or ""
    bars: Sequence[tuple[float, float, float]]  # x, y, height
    tone: str


def charts(trend: ThroughputTrend) -> list[Chart]:
    """Due, lag, rate and success, in this order."""
    places = [(sample.at - trend.now + TREND_WINDOW) / TREND_WINDOW * WIDTH for sample in trend.samples]
    due = [float(sample.due) for sample in trend.samples]
    lag = [sample.lag for sample in trend.samples]
    sent = [minute.sent for minute in trend.minutes]
    shares = [minute.sent / minute.attempts if minute.attempts else None for minute in trend.minutes]
    success = trend.success
    return [
        Chart(
            "due now",
            f"{trend.samples[-1].due:,}",
            f"messages that could start, at most {max(due):,.0f} in the last 15 minutes",
            line(places, due),
            (),
            "calm",
        ),
        Chart(
            "lag",
            spell(lag[-1]),
            f"how long the oldest of them has been due, at most {spell(max(lag))} in the last 15 minutes",
            line(places, lag, least=1.0),
            (),
            "warn" if lag[-1] >= 60 else "calm",
        ),
        Chart(
            "sent a minute",
            f"{trend.rate:,.0f}",
            f"messages sent, at most {max(sent):,} in one of the last 15 minutes",
            "",
            bars(sent),
            "good",
        ),
        Chart(
            "success",
            "–" if success is None else f"{success:.1%}".replace(".0%", "%"),
            "share of attempts that did it, minute by minute",
            "",
            bars([0 if share is None else share for share in shares], most=1.0),
            "good" if success is None or success >= 0.9 else "bad",
        ),
    ]


def line(places: Sequence[float], values: Sequence[float], *, least: float = 10.0) -> str:
    """Points of a line; its top is the highest value, and at least `least`."""
    top = max(least, *values)
    points = (
        f"{min(max(x, 0.0), WIDTH):.1f},{HEIGHT - 2 - (HEIGHT - 4) * value / top:.1f}"
        for x, value in zip(places, values, strict=True)
    )
    return " ".join(points)


def bars(values: Sequence[float], *, most: float | None = None) -> list[tuple[float, float, float]]:
    """A bar for each value."""
    top = most or max(1, *values)
    step = WIDTH / max(len(values), TREND_WINDOW // MINUTE)
    return [
        (round(number * step, 1), round(HEIGHT * (1 - value / top), 1), round(HEIGHT * value / top, 1))
        for number, value in enumerate(values)
    ]


def spell(seconds: float) -> str:
    """A short time in words."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"
