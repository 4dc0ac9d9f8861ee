"""Retention: deletes old rows of a domain, a page at a time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from ..model.time import micros
from ..store.port import Step, Store
from .clock import Clock

_PAGE = 1000
_EVERY = 3600.0  # seconds between two runs


class RetentionPruner:
    """An actor. Each statement deletes a page of old rows; two nodes at once only share the work."""

    def __init__(self, name: str, store: Store, clock: Clock, kept: Mapping[str, timedelta]) -> None:
        self.name = name
        self._store = store
        self._clock = clock
        self._kept = {statement: micros(keep) for statement, keep in kept.items()}

    async def step(self) -> float:
        """Delete one page per statement. Return the seconds until the next step."""
        now = self._clock.now()
        deleted = await self._store.write(
            [Step(statement, {"before": now - keep, "limit": _PAGE}) for statement, keep in self._kept.items()]
        )
        return 0.0 if any(len(rows) == _PAGE for rows in deleted) else _EVERY
