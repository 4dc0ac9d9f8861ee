"""Rate limits of a system, shared by all nodes through its row: slots, concurrency, pauses, quota.

Slots are reserved a quarter second ahead with one conditional UPDATE; every batch sees a pause when it next
reloads the row.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import NamedTuple

from ..kernel.clock import Clock
from ..model.time import SECOND
from ..store.port import Step, Store
from ..store.rate_limits import MAX_AHEAD, slot_interval
from .adaptive_concurrency import INITIAL_CONCURRENCY, AdaptedLimits, CallStats, adapt_concurrency
from .connectors.port import SystemLimits

LONGEST_LAG = 5.0  # seconds that slots are reserved ahead at most, for a slow database
NOTE_EVERY = 0.5  # seconds between two reports of one batch

Sleep = Callable[[float], Awaitable[object]]


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
    """Reserved send slots; if none, the seconds to wait before asking again."""

    instants: list[int]
    wait: float = 0.0


class SystemRateLimiter:
    """Rate limits of one system and class of calls, such as `tenant/system/write`, shared by all nodes."""

    def __init__(self, store: Store, clock: Clock, name: str, per_second: float | None) -> None:
        self.name, self._store, self._clock, self._per_second = name, store, clock, per_second
        self._lag = 0.0  # seconds between a reservation and its use

    async def join(self, limits: SystemLimits) -> None:
        """Create or update the system's row with its limits."""
        step = 0 if self._per_second is None else slot_interval(max(1, round(SECOND / self._per_second)))
        known = {"name": self.name, "step": step, "most": limits.concurrency}
        begin = float(min(INITIAL_CONCURRENCY, limits.concurrency))
        await self._store.write([Step("job_system_join", {**known, "begin": begin})])

    async def take(self, wanted: int) -> SlotReservation:
        """Reserve up to `wanted` send slots within the horizon."""
        now = self._clock.now() + round(self._lag * SECOND)
        params = {"name": self.name, "wanted": wanted, "at": now, "ahead": MAX_AHEAD}
        rows = (await self._store.write([Step("job_system_take", params)]))[0]
        if not rows:
            return SlotReservation([], 1.0)  # throttled
        taken, step = int(rows[0]["taken"]), int(rows[0]["step"])
        first = int(rows[0]["next_at"]) - taken * step
        if not taken:
            return SlotReservation([], max(0.01, (first - MAX_AHEAD - now) / SECOND))
        return SlotReservation([first + place * step for place in range(taken)])

    def adjust_lag(self, late: float) -> None:
        """Adjust the lag after slots were missed by `late` seconds: later slots are reserved further ahead.

        Where a commit takes longer than a slot may be late, nothing would ever be sent otherwise.
        """
        self._lag = min(LONGEST_LAG, self._lag + late) if late else self._lag * 0.9

    async def wait_for_slot(self, sleep: Sleep, slots: int = 1) -> None:
        """Wait for a slot, or for several; not at all without a rate limit."""
        while slots > 0 and self._per_second is not None:
            taken = await self.take(slots)
            slots -= len(taken.instants)
            last = taken.instants[-1] if taken.instants else None
            await sleep(min(taken.wait, 5.0) if last is None else max(0.0, (last - self._clock.now()) / SECOND))

    def pause_step(self, until: int, reason: str) -> Step:
        """Return the step that pauses all calls to the system until an instant."""
        return Step("job_system_block", {"name": self.name, "until": until, "reason": reason[:300]})

    async def note(self, load: CallStats) -> AdaptedLimits | None:
        """Write the call statistics and the adapted limits; None when another node did so first."""
        if not load.calls:
            return None
        row = (await self._store.read("job_system_find", system=self.name))[0]
        after = adapt_concurrency(row, load, row["now"])
        used = {"name": self.name, "month": month_of(row["now"]), "calls": load.calls}
        learned = {"name": self.name, "version": row["version"], **after._asdict()}
        steps = [Step("job_system_used", used), Step("job_system_note", learned)]
        return after if (await self._store.write(steps))[1] else None
