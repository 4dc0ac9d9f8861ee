"""Rate limit, Retry-After and circuit breaker of an endpoint, shared by all processes in one row.

A Retry-After blocks the endpoint until then. An endpoint that does not answer opens the breaker for
`DOWN_FOR`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import NoReturn

from ...kernel.clock import Clock
from ...model.time import SECOND, iso, micros
from ...store.port import Row, Step, Store
from .errors import ModelThrottled, ModelUnavailable, NoModelAnswer
from .settings import ModelSettings

DOWN_FOR = timedelta(seconds=60)  # the breaker's timeout

Sleep = Callable[[float], Awaitable[None]]


class ModelRateLimiter:
    """Limits the calls to one endpoint."""

    def __init__(self, store: Store, clock: Clock, settings: ModelSettings, sleep: Sleep) -> None:
        self._store = store
        self._clock = clock
        self._name = settings.base_url
        self._max_wait = micros(settings.max_wait)
        self._interval = 0 if settings.per_minute is None else round(60 * SECOND / settings.per_minute)
        self._sleep = sleep
        self._joined = False

    def wait_until(self) -> int:
        """Return the time until which a question that starts now may wait."""
        return self._clock.now() + self._max_wait

    async def turn(self, until: int) -> None:
        """Wait for the next rate-limit slot; raises NoModelAnswer if it is after `until`."""
        if not self._joined:
            await self._store.write([Step("model_join", {"name": self._name, "interval": self._interval})])
            self._joined = True
        while True:
            now = self._clock.now()
            take = {"name": self._name, "now": now, "horizon": max(now, until)}
            taken = (await self._store.write([Step("model_take", take)]))[0]
            if taken:
                await self._wait(taken[0]["at"] - now)
                return
            row = (await self._store.read("model_endpoint_state", endpoint=self._name))[0]
            free_at = max(row["blocked_until"], row["next_at"])
            is_down = row["block_kind"] == "down" and row["blocked_until"] > now
            if is_down or free_at > until:
                raise _refusal(row, now)
            await self._wait(free_at - now)

    async def park(self, wait: timedelta, reason: str) -> None:
        """Block the endpoint for the provider's Retry-After."""
        await self._park("busy", wait, reason)

    async def down(self, reason: str) -> NoReturn:
        """Open the breaker and raise ModelUnavailable."""
        await self._park("down", DOWN_FOR, reason)
        raise ModelUnavailable(f"the model is unavailable: {reason}", remedy="see: tidings models calls")

    async def _park(self, kind: str, wait: timedelta, reason: str) -> None:
        until = self._clock.now() + micros(wait)
        fields = {"name": self._name, "until": until, "kind": kind, "reason": reason}
        await self._store.write([Step("model_block", fields)])

    async def _wait(self, length: int) -> None:
        if length > 0:
            await self._sleep(length / SECOND)


def _refusal(row: Row, now: int) -> NoModelAnswer:
    if row["blocked_until"] > now and row["block_kind"] == "down":
        return ModelUnavailable(f"the model is left alone until {iso(row['blocked_until'])}: {row['block_reason']}")
    if row["blocked_until"] > now:
        until = row["blocked_until"]
        return ModelThrottled(f"the model wants no calls before {iso(until)}: {row['block_reason']}", until=until)
    until = row["next_at"]
    return ModelThrottled(f"the model's rate is used up until {iso(until)}", until=until)
