"""Time, chance and identity: the only module that asks the system for any of them.

`now` is the best known time of the database. It is learned from the database's answers and carried on by our
own monotonic clock, so a wrong or jumping wall clock on a node moves nothing. Until something has been
learned it is the system's wall clock. A store without a time of its own (SQLite) takes `wall`, never `now`: a
clock that learned from itself would keep the time it started with when the machine's is corrected.
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
    """What the engine may know of time, chance and identity."""

    def now(self) -> Instant:
        """The database's time, as well as it is known."""

    def wall(self) -> Instant:
        """This machine's own time, whatever the database says."""

    def monotonic(self) -> float:
        """Seconds that only ever go forward, for durations and deadlines."""

    def chance(self) -> float:
        """A random number from 0 to below 1."""

    def new_id(self) -> str:
        """A new identifier that sorts by time (UUID 7)."""

    def learn(self, database_now: int, asked_at: float, answered_at: float) -> None:
        """Take in what the database said its time is, and the monotonic times around the question."""

    def drift(self) -> timedelta:
        """How far the database's time is ahead of this machine's wall clock; zero when never learned."""


class DriftLevel(StrEnum):
    """What a difference between the clocks calls for."""

    FINE = "fine"
    NOTED = "noted"  # logged
    UNHEALTHY = "unhealthy"  # fails the health check


def classify_drift(drift: timedelta) -> DriftLevel:
    """Over 1 s is logged, over 10 s is unhealthy, in either direction."""
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
        """The best guess: the middle."""
        return (self.low + self.high) / 2


def clock_sample(database_now: int, asked_at: float, answered_at: float) -> ClockSample:
    """What one answer tells: the time was read somewhere between the question and the answer."""
    return ClockSample(database_now - answered_at * SECOND, database_now - asked_at * SECOND)


def narrow_sample(known: ClockSample | None, new: ClockSample) -> ClockSample:
    """What was known, moved and cut to fit within the new sample.

    So the guess is never outside the newest bounds, follows two clocks that run apart slowly, and errors of
    half a round trip cannot add up. Far outside, a clock was set, and only the new sample counts.
    """
    if known is None or max(new.low - known.high, known.low - new.high) > new.high - new.low:
        return new
    return ClockSample(min(max(known.low, new.low), new.high), max(min(known.high, new.high), new.low))


class SystemClock:
    """The real one."""

    def __init__(self) -> None:
        self._sample: ClockSample | None = None
        self._random = random.Random()

    def now(self) -> Instant:
        """The learned database time carried on by the monotonic clock, or the wall clock."""
        if self._sample is None:
            return self.wall()
        return Instant(round(time.monotonic() * SECOND + self._sample.offset))

    def wall(self) -> Instant:
        """The system's wall clock."""
        return Instant(time.time_ns() // 1000)

    monotonic = staticmethod(time.monotonic)

    def chance(self) -> float:
        """A random number; for jitter, not for secrets."""
        return self._random.random()

    def new_id(self) -> str:
        """A UUID 7 as text with hyphens."""
        return str(uuid_utils.uuid7())

    def learn(self, database_now: int, asked_at: float, answered_at: float) -> None:
        """Narrow down what was known by this."""
        self._sample = narrow_sample(self._sample, clock_sample(database_now, asked_at, answered_at))

    def drift(self) -> timedelta:
        """The learned time minus the wall clock."""
        if self._sample is None:
            return timedelta(0)
        return timedelta(microseconds=self.now() - self.wall())


class ManualClock:
    """Time moved by hand, chance and identity from a seed, so that a run can be repeated exactly."""

    def __init__(self, now: int = 1_800_000_000 * SECOND, *, seed: int = 0) -> None:
        self._now = now
        self._monotonic = 0
        self._drift = timedelta(0)
        self._random = random.Random(seed)

    def advance(self, seconds: float = 0, *, minutes: float = 0, hours: float = 0) -> None:
        """Let time pass, on both clocks; it never goes back."""
        passed = round((seconds + 60 * minutes + 3600 * hours) * SECOND)
        if passed < 0:
            raise ValueError("time goes forward; use jump() to set the wall clock back")
        self._now += passed
        self._monotonic += passed

    def advance_to(self, at: int) -> None:
        """Let time pass until an instant; one that is over already changes nothing."""
        self.advance(max(0, at - self._now) / SECOND)

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward or back, as an operator would; the monotonic clock does not notice."""
        self._now += round(seconds * SECOND)

    def set_drift(self, drift: timedelta) -> None:
        """What drift() shall say from now on."""
        self._drift = drift

    def now(self) -> Instant:
        """The time that was set."""
        return Instant(self._now)

    def wall(self) -> Instant:
        """The same: here the machine and the database agree."""
        return Instant(self._now)

    def monotonic(self) -> float:
        """Seconds advanced so far."""
        return self._monotonic / SECOND

    def chance(self) -> float:
        """The next number of the seeded sequence."""
        return self._random.random()

    def new_id(self) -> str:
        """A UUID 7 of this clock's time with seeded bits."""
        bits = (self._now // 1000 & (1 << 48) - 1) << 80 | 0x7 << 76 | self._random.getrandbits(12) << 64
        return str(uuid.UUID(int=bits | 0b10 << 62 | self._random.getrandbits(62)))

    def learn(self, database_now: int, asked_at: float, answered_at: float) -> None:
        """Nothing to learn: this clock is the truth."""

    def drift(self) -> timedelta:
        """What was pretended."""
        return self._drift
