"""The limiter: one row per endpoint says when it may be called next, for all processes together.

A wait that the provider asks for, and the silence after it did not answer, park the row; nobody calls before
then.
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

DOWN_FOR = timedelta(seconds=60)  # before an endpoint that did not answer is tried again

Sleep = Callable[[float], Awaitable[None]]


class ModelRateLimiter:
    """Turns at one endpoint."""

    def __init__(self, store: Store, clock: Clock, settings: ModelSettings, sleep: Sleep) -> None:
        self._store = store
        self._clock = clock
        self._name = settings.base_url
        self._patience = micros(settings.patience)
        self._interval = 0 if settings.per_minute is None else round(60 * SECOND / settings.per_minute)
        self._sleep = sleep
        self._joined = False

    def patience(self) -> int:
        """Until when a question that is asked now may wait for its turns, all in all."""
        return self._clock.now() + self._patience

    async def turn(self, until: int) -> None:
        """Wait for the next free instant; raises when it lies behind `until`."""
        await self._join()
        while True:
            now = self._clock.now()
            take = {"name": self._name, "now": now, "horizon": max(now, until)}
            taken = (await self._store.write([Step("model_take", take)]))[0]
            if taken:
                await self._wait(taken[0]["at"] - now)
                return
            standing = (await self._store.read("model_endpoint_state", endpoint=self._name))[0]
            free_at = max(standing["blocked_until"], standing["next_at"])
            is_down = standing["block_kind"] == "down" and standing["blocked_until"] > now
            if is_down or free_at > until:
                raise _refusal(standing, now)
            await self._wait(free_at - now)

    async def park(self, wait: timedelta, reason: str) -> None:
        """The provider asked for this wait."""
        await self._park("busy", wait, reason)

    async def down(self, reason: str) -> NoReturn:
        """It does not answer: leave it alone for a while, and say so."""
        await self._park("down", DOWN_FOR, reason)
        raise ModelUnavailable(f"the model does not answer: {reason}", remedy="see: tidings models calls")

    async def _park(self, kind: str, wait: timedelta, reason: str) -> None:
        until = self._clock.now() + micros(wait)
        fields = {"name": self._name, "until": until, "kind": kind, "reason": reason}
        await self._store.write([Step("model_block", fields)])

    async def _join(self) -> None:
        if not self._joined:
            fields = {"name": self._name, "interval": self._interval}
            await self._store.write([Step("model_join", fields)])
            self._joined = True

    async def _wait(self, length: int) -> None:
        if length > 0:
            await self._sleep(length / SECOND)


def _refusal(standing: Row, now: int) -> NoModelAnswer:
    if standing["blocked_until"] > now and standing["block_kind"] == "down":
        return ModelUnavailable(
            f"the model is left alone until {iso(standing['blocked_until'])}: {standing['block_reason']}"
        )
    if standing["blocked_until"] > now:
        until = standing["blocked_until"]
        return ModelThrottled(
            f"the model wants no calls before {iso(until)}: {standing['block_reason']}", until=until
        )
    until = standing["next_at"]
    return ModelThrottled(f"the model's rate is used up until {iso(until)}", until=until)
