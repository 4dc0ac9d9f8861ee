"""Time, randomness and ids: the only module that asks the system for any of them.

`now` estimates the database's time: learned from its responses and extrapolated with our monotonic clock, so
a wrong or jumping wall clock of a node has no effect. Before the first response it is the wall clock. SQLite
has no time of its own and uses `wall`, never `now`: otherwise a corrected system clock would never be
noticed.
"""

from __future__ import annotations

import random
import time
import uuid
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Protocol

import uuid_utils

from ..model.time import SECOND, Instant

NOTED_DRIFT = timedelta(seconds=1)
UNHEALTHY_DRIFT = timedelta(seconds=10)


class Clock(Protocol):
    """Source of time, randomness and ids."""

    def now(self) -> Instant:
        """Return the estimated time of the database."""

    def wall(self) -> Instant:
        """Return this machine's time, independent of the database."""

    def monotonic(self) -> float:
        """Return seconds that never go back, for durations and deadlines."""

    def chance(self) -> float:
        """Return a random number from 0 to below 1."""

    def new_id(self) -> str:
        """Return a new identifier that sorts by time (UUID 7)."""

    def learn(self, database_now: int, asked_at: float, answered_at: float) -> None:
        """Learn the database's time from a response; the other times are monotonic, around the request."""

    def drift(self) -> timedelta:
        """Return how far the database's time is ahead of the wall clock; zero if it was never learned."""


class DriftLevel(StrEnum):
    """Severity of a difference between the clocks."""

    FINE = "fine"
    NOTED = "noted"  # logged
    UNHEALTHY = "unhealthy"  # fails the health check


def classify_drift(drift: timedelta) -> DriftLevel:
    """Classify a drift in either direction: over 1 s is logged, over 10 s is unhealthy."""
    if abs(drift) > UNHEALTHY_DRIFT:
        return DriftLevel.UNHEALTHY
    return DriftLevel.NOTED if abs(drift) > NOTED_DRIFT else DriftLevel.FINE


@dataclass(frozen=True, slots=True)
class ClockSample:
    """Bounds of the database's time minus our monotonic time, in microseconds."""

    low: float
    high: float

    @property
    def offset(self) -> float:
        """Return the middle of the bounds as the estimate."""
        return (self.low + self.high) / 2


def clock_sample(database_now: int, asked_at: float, answered_at: float) -> ClockSample:
    """Return the bounds of one response: the time was read between the request and the response."""
    return ClockSample(database_now - answered_at * SECOND, database_now - asked_at * SECOND)


def narrow_sample(known: ClockSample | None, new: ClockSample) -> ClockSample:
    """Return the known bounds, moved and cut to fit within the new sample.

    So the estimate is never outside the newest bounds, follows slow drift, and does not accumulate errors of
    half a round trip. If the new sample is far outside, a clock was set, and only the new sample counts.
    """
    if known is None or max(new.low - known.high, known.low - new.high) > new.high - new.low:
        return new
    return ClockSample(min(max(known.low, new.low), new.high), max(min(known.high, new.high), new.low))


class SystemClock:
    """The system's clock."""

    def __init__(self) -> None:
        self._sample: ClockSample | None = None
        self._random = random.Random()

    def now(self) -> Instant:
        """Return the learned database time extrapolated with the monotonic clock, or the wall clock."""
        if self._sample is None:
            return self.wall()
        return Instant(round(time.monotonic() * SECOND + self._sample.offset))

    def wall(self) -> Instant:
        """Return the system's wall clock."""
        return Instant(time.time_ns() // 1000)

    monotonic = staticmethod(time.monotonic)

    def chance(self) -> float:
        """Return a random number; for jitter, not for secrets."""
        return self._random.random()

    def new_id(self) -> str:
        """Return a UUID 7 as text with hyphens."""
        return str(uuid_utils.uuid7())

    def learn(self, database_now: int, asked_at: float, answered_at: float) -> None:
        """Narrow the estimate with this response."""
        self._sample = narrow_sample(self._sample, clock_sample(database_now, asked_at, answered_at))

    def drift(self) -> timedelta:
        """Return the learned time minus the wall clock."""
        if self._sample is None:
            return timedelta(0)
        return timedelta(microseconds=self.now() - self.wall())


class ManualClock:
    """A clock for tests: time is moved by hand, randomness and ids come from a seed."""

    def __init__(self, now: int = 1_800_000_000 * SECOND, *, seed: int = 0) -> None:
        self._now = now
        self._monotonic = 0
        self._drift = timedelta(0)
        self._random = random.Random(seed)

    def advance(self, seconds: float = 0, *, minutes: float = 0, hours: float = 0) -> None:
        """Advance both clocks."""
        passed = round((seconds + 60 * minutes + 3600 * hours) * SECOND)
        if passed < 0:
            raise ValueError("time goes forward; use jump() to set the wall clock back")
        self._now += passed
        self._monotonic += passed

    def advance_to(self, at: int) -> None:
        """Advance to an instant; does nothing if it has passed."""
        self.advance(max(0, at - self._now) / SECOND)

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward or back, as an operator would. The monotonic clock does not change."""
        self._now += round(seconds * SECOND)

    def set_drift(self, drift: timedelta) -> None:
        """Set the value that drift() returns."""
        self._drift = drift

    def now(self) -> Instant:
        """Return the current time of this clock."""
        return Instant(self._now)

    def wall(self) -> Instant:
        """Return the same as now(): here machine and database agree."""
        return Instant(self._now)

    def monotonic(self) -> float:
        """Return the seconds advanced so far."""
        return self._monotonic / SECOND

    def chance(self) -> float:
        """Return the next number of the seeded sequence."""
        return self._random.random()

    def new_id(self) -> str:
        """Return a UUID 7 of this clock's time with seeded bits."""
        bits = (self._now // 1000 & (1 << 48) - 1) << 80 | 0x7 << 76 | self._random.getrandbits(12) << 64
        return str(uuid.UUID(int=bits | 0b10 << 62 | self._random.getrandbits(62)))

    def learn(self, database_now: int, asked_at: float, answered_at: float) -> None:
        """Do nothing: this clock is exact."""

    def drift(self) -> timedelta:
        """Return the value that was set by set_drift()."""
        return self._drift
