"""Adaptive concurrency of a system (AIMD) and its circuit breaker. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..model.time import MINUTE

INITIAL_CONCURRENCY = 8  # concurrent calls before anything is known
BREAKER_THRESHOLD = 5  # failures in a row that open the breaker
BREAKER_TIMEOUT = MINUTE
SLOW = 4  # times the best mean: slower answers count as overload
SLOW_FROM = 200_000  # microseconds below which nothing counts as slow


class CallStats(NamedTuple):
    """Calls of one batch to a system since its last report."""

    calls: int = 0
    good: int = 0
    throttled: int = 0
    failures: int = 0  # in a row, at the end
    took: int = 0  # microseconds of all good calls

    def plus(self, *, good: bool, failed: bool, throttled: bool, took: int) -> CallStats:
        """Return the statistics with one more call."""
        return CallStats(
            self.calls + 1,
            self.good + good,
            self.throttled + throttled,
            0 if good else self.failures + failed,
            self.took + (took if good else 0),
        )


class AdaptedLimits(NamedTuple):
    """The new values of a system's row."""

    concurrency: float
    failures: int
    best: int | None
    until: int  # the breaker is open until then; 0: closed
    reason: str | None


def adapt_concurrency(row: Mapping[str, Any], load: CallStats, now: int) -> AdaptedLimits:
    """Increase concurrency by one after good calls, halve it on overload, open the breaker on failures."""
    limit, most, best = float(row["concurrency"]), int(row["most"]), row["best"]
    mean = load.took // load.good if load.good else None
    if mean is not None:
        best = mean if best is None else min(mean, best + best // 20 + 1)  # the best value decays slowly
    is_slow = mean is not None and best is not None and mean > max(SLOW * best, SLOW_FROM)
    if load.throttled or is_slow or load.failures:
        limit = max(1.0, limit / 2)
    elif load.good:
        limit = min(float(most), limit + 1)
    failures = load.failures if load.good else int(row["failures"]) + load.failures
    if failures >= BREAKER_THRESHOLD and load.failures:
        return AdaptedLimits(1.0, failures, best, now + BREAKER_TIMEOUT, f"{failures} failures in a row")
    return AdaptedLimits(min(limit, float(most)), failures, best, 0, None)
