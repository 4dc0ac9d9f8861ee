"""The clock of one simulated process: its wall clock may be wrong; what it learns is the kernel's own."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta

from tidings.kernel.clock import ClockSample, clock_sample, narrow_sample
from tidings.model.time import SECOND, Instant

START = 1_800_000_000 * SECOND


class HostClock:
    """`Clock` for a process in a world whose true time is `seconds` since START."""

    def __init__(self, seconds: Callable[[], float], *, seed: str) -> None:
        self._seconds = seconds
        self._random = random.Random(seed)
        self._offset = self._random.uniform(0, 1e4)  # every machine counts from its own beginning
        self._sample: ClockSample | None = None
        self.skew = 0.0  # seconds by which the wall clock is ahead

    def now(self) -> Instant:
        """As the system's clock: the learned time, or the wall clock."""
        if self._sample is None:
            return self.wall()
        return Instant(round(self.monotonic() * SECOND + self._sample.offset))

    def wall(self) -> Instant:
        """The true time, and the error."""
        return Instant(START + round((self._seconds() + self.skew) * SECOND))

    def monotonic(self) -> float:
        """Seconds that only go forward."""
        return self._seconds() + self._offset

    def chance(self) -> float:
        """The next number of this process's own sequence."""
        return self._random.random()

    def new_id(self) -> str:
        """Nothing in the kernel asks for one; here it is all the same."""
        return f"{self._random.getrandbits(128):032x}"

    def learn(self, database_now: int, asked_at: float, answered_at: float) -> None:
        """Narrow down what was known."""
        self._sample = narrow_sample(self._sample, clock_sample(database_now, asked_at, answered_at))

    def drift(self) -> timedelta:
        """The learned time minus the wall clock."""
        if self._sample is None:
            return timedelta(0)
        return timedelta(microseconds=self.now() - self.wall())
