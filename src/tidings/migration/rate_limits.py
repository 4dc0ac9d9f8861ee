"""What a system bears, shared by all nodes through its row: send instants, calls at once, pauses, quotas.

Instants are reserved a quarter second ahead with one conditional update; a pause is seen by everybody at
their next look. Calls at once grow by one and are halved (AIMD); five failures in a row open the breaker.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ..kernel.clock import Clock
from ..model.time import MINUTE, SECOND
from ..store.port import Step, Store
from ..store.rate_limits import MAX_AHEAD, slot_interval
from .connectors.port import SystemLimits

INITIAL_CONCURRENCY = 8  # calls at once, until more is known
BREAKER_THRESHOLD = 5  # failures in a row after which nobody calls for a while
BREAKER_TIMEOUT = MINUTE
SLOW = 4  # times the best: an answer that takes so long means 'too much'
SLOW_FROM = 200_000  # microseconds below which nothing is slow
LONGEST_LAG = 5.0  # seconds that instants are asked for ahead of time, where the database is slow
NOTE_EVERY = 0.5  # seconds between two notes of one batch

Sleep = Callable[[float], Awaitable[object]]


class CallStats(NamedTuple):
    """What one batch saw of a system since its last note."""

    calls: int = 0
    good: int = 0
    throttled: int = 0
    failures: int = 0  # in a row, at the end
    took: int = 0  # microseconds of the good ones together

    def plus(self, *, good: bool, failed: bool, throttled: bool, took: int) -> CallStats:
        """One more call."""
        return CallStats(
            self.calls + 1,
            self.good + good,
            self.throttled + throttled,
            0 if good else self.failures + failed,
            self.took + (took if good else 0),
        )


class AdaptedLimits(NamedTuple):
    """A system's row after a load."""

    concurrency: float
    failures: int
    best: int | None
    until: int  # parked until; 0: not
    reason: str | None


def adapt_concurrency(row: Mapping[str, Any], load: CallStats, now: int) -> AdaptedLimits:
    """Additive increase, multiplicative decrease; the breaker. Pure."""
    limit, most, best = float(row["concurrency"]), int(row["most"]), row["best"]
    mean = load.took // load.good if load.good else None
    if mean is not None:
        best = mean if best is None else min(mean, best + best // 20 + 1)  # it forgets slowly
    is_slow = mean is not None and best is not None and mean > max(SLOW * best, SLOW_FROM)
    if load.throttled or is_slow or load.failures:
        limit = max(1.0, limit / 2)
    elif load.good:
        limit = min(float(most), limit + 1)
    failures = load.failures if load.good else int(row["failures"]) + load.failures
    if failures >= BREAKER_THRESHOLD and load.failures:
        return AdaptedLimits(1.0, failures, best, now + BREAKER_TIMEOUT, f"{failures} failures in a row")
    return AdaptedLimits(min(limit, float(most)), failures, best, 0, None)


def month_of(now: int) -> int:
    """The calendar month of an instant, as a number."""
    at = datetime.fromtimestamp(now / SECOND, UTC)
    return at.year * 12 + at.month


def next_month(now: int) -> int:
    """The instant at which the next month begins."""
    at = datetime.fromtimestamp(now / SECOND, UTC)
    then = datetime(at.year + at.month // 12, at.month % 12 + 1, 1, tzinfo=UTC)
    return int(then.timestamp()) * SECOND


class SlotReservation(NamedTuple):
    """Reserved send instants; none, and then how many seconds to wait before asking again."""

    instants: list[int]
    wait: float = 0.0


class SystemRateLimiter:
    """One system and one class of calls: `tenant/system/write`."""

    def __init__(self, store: Store, clock: Clock, name: str) -> None:
        self.name = name
        self._store = store
        self._clock = clock
        self._lag = 0.0  # seconds between asking for an instant and being able to use it

    async def join(self, per_second: float | None, limits: SystemLimits) -> None:
        """Make it known, with what its documents and the job say."""
        step = 0 if per_second is None else slot_interval(max(1, round(SECOND / per_second)))
        known = {"name": self.name, "step": step, "most": limits.concurrency}
        begin = float(min(INITIAL_CONCURRENCY, limits.concurrency))
        await self._store.write([Step("job_system_join", {**known, "begin": begin})])

    async def take(self, wanted: int) -> SlotReservation:
        """As many instants as there are within the horizon, at most so many."""
        now = self._clock.now() + round(self._lag * SECOND)
        params = {"name": self.name, "wanted": wanted, "at": now, "ahead": MAX_AHEAD}
        rows = (await self._store.write([Step("job_system_take", params)]))[0]
        if not rows:
            return SlotReservation([], 1.0)  # parked
        taken, step = int(rows[0]["taken"]), int(rows[0]["step"])
        first = int(rows[0]["next_at"]) - taken * step
        if not taken:
            return SlotReservation([], max(0.01, (first - MAX_AHEAD - now) / SECOND))
        return SlotReservation([first + place * step for place in range(taken)])

    def learn(self, late: float) -> None:
        """Instants were missed by so many seconds, or none was: the next ones lie as much further ahead.

        Where a commit takes longer than an instant may be late, nothing would ever be sent otherwise.
        """
        self._lag = min(LONGEST_LAG, self._lag + late) if late else self._lag * 0.9

    async def turn(self, sleep: Sleep) -> None:
        """Wait for an instant of one's own."""
        while True:
            taken = await self.take(1)
            if taken.instants:
                await sleep(max(0.0, (taken.instants[0] - self._clock.now()) / SECOND))
                return
            await sleep(min(taken.wait, 5.0))

    def parking(self, until: int, reason: str) -> Step:
        """Nobody calls before an instant."""
        return Step("job_system_block", {"name": self.name, "until": until, "reason": reason[:300]})

    async def note(self, load: CallStats) -> AdaptedLimits | None:
        """Write down what was seen; None: somebody else has just done so."""
        if not load.calls:
            return None
        row = (await self._store.read("job_system_find", system=self.name))[0]
        after = adapt_concurrency(row, load, row["now"])
        used = {"name": self.name, "month": month_of(row["now"]), "calls": load.calls}
        learned = {"name": self.name, "version": row["version"], **after._asdict()}
        steps = [Step("job_system_used", used), Step("job_system_note", learned)]
        return after if (await self._store.write(steps))[1] else None
