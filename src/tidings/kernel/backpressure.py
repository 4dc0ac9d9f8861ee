"""Pressure: a node asks less of a database that is slow, and says so.

One claim is under way at a time. When claims take long, the node rests as long as the last one took before
it asks again, so that claims are never more than half of what a slow database works on.
"""

from __future__ import annotations

from ..observability.events import Emit, StoreSlow

SLOW_CLAIM = 0.5  # seconds for a claim, from which on the database counts as slow
MAX_REST = 2.0  # seconds of rest


class Backpressure:
    """What one node has seen of the database lately."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self.rest = 0.0  # seconds to rest before the next claim

    def note(self, seconds: float) -> None:
        """A claim took so long."""
        if seconds < (SLOW_CLAIM / 2 if self.rest else SLOW_CLAIM):
            self.rest = 0.0
            return
        if not self.rest:
            self._emit(StoreSlow(round(seconds * 1000)))
        self.rest = min(seconds, MAX_REST)
