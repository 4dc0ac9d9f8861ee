"""Sample queue depth and lag for the charts of the last fifteen minutes.

Samples are kept in memory only; after a restart the charts begin with the database's tallies.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from ..kernel.clock import Clock
from ..model.time import MINUTE, SECOND
from ..store.port import Row, Store
from .events import event_types
from .health import NOT_ATTEMPTS

SAMPLE_INTERVAL = 10.0  # seconds between two samples
TREND_WINDOW = 15 * MINUTE
MAX_DUE = 1_000  # per priority of a channel


class QueueSample(NamedTuple):
    """Queue depth and lag at one instant."""

    at: int
    due: int
    lag: float  # seconds since the oldest was due


class MinuteCounts(NamedTuple):
    """Attempts and successes of one minute."""

    at: int
    sent: int
    attempts: int


class ThroughputTrend(NamedTuple):
    """Throughput of the last fifteen minutes."""

    now: int
    samples: Sequence[QueueSample]
    minutes: Sequence[MinuteCounts]  # every minute, the current one last

    @property
    def rate(self) -> float:
        """Messages sent in the last sixty seconds, interpolated from whole minutes."""
        running, before = self.minutes[-1], self.minutes[-2]
        return running.sent + before.sent * (1 - (self.now - running.at) / MINUTE)

    @property
    def success(self) -> float | None:
        """The share of successful attempts; None without any."""
        attempts = sum(minute.attempts for minute in self.minutes)
        return sum(minute.sent for minute in self.minutes) / attempts if attempts else None


class TrendSampler:
    """An actor that takes a sample every ten seconds."""

    name = "trend_sampler"

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._samples: deque[QueueSample] = deque(maxlen=round(TREND_WINDOW / SECOND / SAMPLE_INTERVAL))

    async def step(self) -> float:
        """Take a sample, unless the last one is fresh."""
        now = self._clock.now()
        last = self._samples[-1].at if self._samples else None
        if last is None or not 0 <= now - last < SAMPLE_INTERVAL * SECOND:
            self._samples.append(await self._sample())
        return SAMPLE_INTERVAL

    async def trend(self) -> ThroughputTrend:
        """The remembered samples, with one taken now."""
        sample = await self._sample()
        since = sample.at - TREND_WINDOW
        first = since // MINUTE * MINUTE + MINUTE
        rows = await self._store.read("attempt_tally_minutes", since=first, without=event_types.EVENTS_CHANNEL)
        kept = [past for past in self._samples if since <= past.at < sample.at]
        return ThroughputTrend(sample.at, [*kept, sample], counts_per_minute(rows, first, sample.at))

    async def _sample(self) -> QueueSample:
        now: int = (await self._store.read("now"))[0]["now"]
        due = sum(int(row["due"]) for row in await self._store.read("counts_due", most=MAX_DUE))
        oldest = [row["due_at"] for row in await self._store.read("oldest_due") if row["due_at"] is not None]
        return QueueSample(now, due, max(0, now - min(oldest, default=now)) / SECOND)


def counts_per_minute(rows: Sequence[Row], first: int, now: int) -> list[MinuteCounts]:
    """One entry per minute, including minutes without attempts. Pure."""
    sent: dict[int, int] = {}
    attempts: dict[int, int] = {}
    for row in rows:
        what = str(row["outcome"]).partition(":")[0]
        if what not in NOT_ATTEMPTS:
            attempts[row["at"]] = attempts.get(row["at"], 0) + int(row["n"])
        if what == "done":
            sent[row["at"]] = sent.get(row["at"], 0) + int(row["n"])
    last = now // MINUTE * MINUTE
    return [MinuteCounts(at, sent.get(at, 0), attempts.get(at, 0)) for at in range(first, last + 1, MINUTE)]
