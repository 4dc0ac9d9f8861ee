"""Forgetting: old rows of a domain, a page at a time, in its own time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from ..model.time import micros
from ..store.port import Step, Store
from .clock import Clock

_PAGE = 1000
_EVERY = 3600.0  # seconds between two looks


class RetentionPruner:
    """An actor. Each statement forgets a page of what is old enough; two at once only share the work."""

    def __init__(self, name: str, store: Store, clock: Clock, kept: Mapping[str, timedelta]) -> None:
        self.name = name
        self._store = store
        self._clock = clock
        self._kept = {statement: micros(keep) for statement, keep in kept.items()}

    async def step(self) -> float:
        """Forget one page of each; gives the seconds until the next look."""
        now = self._clock.now()
        gone = await self._store.write(
            [
                Step(statement, {"before": now - keep, "limit": _PAGE})
                for statement, keep in self._kept.items()
            ]
        )
        return 0.0 if any(len(rows) == _PAGE for rows in gone) else _EVERY
