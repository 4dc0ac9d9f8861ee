"""Forgetting: recipients of ended broadcasts who were never sent anything. The tally stays."""

from __future__ import annotations

from datetime import timedelta

from ...kernel.clock import Clock
from ...model.time import micros
from ...store.port import Step, Store

PAGE = 1000
_EVERY = 3600.0  # seconds between two looks


class FrozenPruner:
    """An actor. What had a task is forgotten with that; two at once only share the work."""

    name = "frozen recipients"

    def __init__(self, store: Store, clock: Clock, keep: timedelta) -> None:
        self._store = store
        self._clock = clock
        self._keep = micros(keep)

    async def step(self) -> float:
        """Forget one page."""
        old = {"before": self._clock.now() - self._keep, "limit": PAGE}
        gone = (await self._store.write([Step("frozen_prune", old)]))[0]
        return 0.0 if len(gone) == PAGE else _EVERY
