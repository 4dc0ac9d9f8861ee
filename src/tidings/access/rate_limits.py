"""Rate limits of API keys across all processes.

A conditional UPDATE reserves the calls of a quarter second for one process. So a limit holds for the whole
fleet and across restarts, and costs at most four writes per second. Reservations expire after one second.
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

RESERVATIONS_PER_SECOND = 4
RESERVATION_TTL = 1.0  # seconds


@dataclass(slots=True)
class _CallBudget:
    """The calls that this process has reserved for one key."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    calls: int = 0
    reserved_at: float = -math.inf
    blocked_until: float = -math.inf


class ApiKeyRateLimiter:
    """Limits keys that have a rate; other keys cost nothing."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._budgets: dict[str, _CallBudget] = {}

    async def spend(self, caller: Caller) -> None:
        """Use one call; raise RateLimited if none is left."""
        if caller.rate is None or caller.key is None:
            return
        budget = self._budgets.setdefault(caller.key, _CallBudget())
        async with budget.lock:
            now = self._clock.monotonic()
            if now < budget.blocked_until:
                raise _rate_limited(caller, budget.blocked_until - now)
            if budget.calls <= 0 or now - budget.reserved_at > RESERVATION_TTL:
                await self._reserve(budget, caller.key, caller.rate, caller)
            budget.calls -= 1

    async def _reserve(self, budget: _CallBudget, key: str, rate: int, caller: Caller) -> None:
        interval = SECOND // rate
        for calls in sorted({max(1, rate // RESERVATIONS_PER_SECOND), 1}, reverse=True):
            reservation = {"id": key, "cost": calls * interval, "credit": SECOND}
            if (await self._store.write([Step("access_key_spend", reservation)]))[0]:
                budget.calls, budget.reserved_at = calls, self._clock.monotonic()
                return
        rows = await self._store.read("access_key_wait", id=key)
        wait = (rows[0]["wait"] + interval - SECOND) / SECOND if rows else 1.0
        budget.blocked_until = self._clock.monotonic() + wait
        raise _rate_limited(caller, wait)


def _rate_limited(caller: Caller, wait: float) -> RateLimited:
    problem = f"the key {caller.who!r} has exceeded its limit of {caller.rate} calls per second"
    return RateLimited(problem, seconds=max(1, math.ceil(wait)))
