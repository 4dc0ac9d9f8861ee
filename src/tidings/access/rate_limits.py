"""Rates of keys, over all processes: a conditional UPDATE takes a quarter second's calls for one process.

So a rate holds for the fleet and over restarts, and costs at most four writes a second. What a process has
taken and does not use within a second is lost.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, field

from ..kernel.clock import Clock
from ..model.errors import RateLimited
from ..model.time import SECOND
from ..store.port import Step, Store
from .caller import Caller

PORTIONS = 4  # of a second's calls
FRESH = 1.0  # seconds for which what was taken is good


@dataclass(slots=True)
class _CallBudget:
    """What this process holds of one key's rate."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    calls: int = 0
    taken_at: float = -math.inf
    closed_until: float = -math.inf


class ApiKeyRateLimiter:
    """Counts the calls of keys that have a rate; the others cost nothing."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._budgets: dict[str, _CallBudget] = {}

    async def spend(self, caller: Caller) -> None:
        """One call; raises when the key has none left."""
        if caller.rate is None or caller.key is None:
            return
        budget = self._budgets.setdefault(caller.key, _CallBudget())
        async with budget.lock:
            now = self._clock.monotonic()
            if now < budget.closed_until:
                raise _too_often(caller, budget.closed_until - now)
            if budget.calls <= 0 or now - budget.taken_at > FRESH:
                await self._take(budget, caller.key, caller.rate, caller)
            budget.calls -= 1

    async def _take(self, budget: _CallBudget, key: str, rate: int, caller: Caller) -> None:
        interval = SECOND // rate
        for calls in sorted({max(1, rate // PORTIONS), 1}, reverse=True):
            wish = {"id": key, "cost": calls * interval, "credit": SECOND}
            if (await self._store.write([Step("access_key_spend", wish)]))[0]:
                budget.calls, budget.taken_at = calls, self._clock.monotonic()
                return
        rows = await self._store.read("access_key_wait", id=key)
        wait = (rows[0]["wait"] + interval - SECOND) / SECOND if rows else 1.0
        budget.closed_until = self._clock.monotonic() + wait
        raise _too_often(caller, wait)


def _too_often(caller: Caller, wait: float) -> RateLimited:
    problem = f"the key {caller.who!r} has used up its {caller.rate} calls a second"
    return RateLimited(problem, seconds=max(1, math.ceil(wait)))
