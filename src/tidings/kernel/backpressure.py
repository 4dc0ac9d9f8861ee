"""Backpressure: a node claims less often while the database is slow.

A node has one claim in progress at a time. After a slow claim it waits as long as that claim took, so claims
use at most half of a slow database's time.
"""

from __future__ import annotations

from ..observability.events import Emit, StoreSlow

SLOW_CLAIM = 0.5  # seconds; a claim that takes longer means that the database is slow
MAX_REST = 2.0  # seconds between claims


class Backpressure:
    """Tracks how long the claims of one node take."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self.rest = 0.0  # seconds to wait before the next claim

    def note(self, seconds: float) -> None:
        """Record the duration of a claim."""
        if seconds < (SLOW_CLAIM / 2 if self.rest else SLOW_CLAIM):
            self.rest = 0.0
            return
        if not self.rest:
            self._emit(StoreSlow(round(seconds * 1000)))
        self.rest = min(seconds, MAX_REST)
