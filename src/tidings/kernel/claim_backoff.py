"""Random wait after a wake-up hint, so that nodes do not all claim at once (thundering herd).

All nodes receive the same hint, and usually one is enough. A node whose last claim found a task follows the
next hint almost immediately; each claim without a task doubles its wait. So an idle fleet does the work of
one node. Under load all nodes take part: a full claim sends another hint.
"""

from __future__ import annotations

from collections.abc import Callable

from .clock import Clock

_FIRST = 0.003  # seconds, the longest wait of a node whose last claim found a task
_MOST = 5  # doublings, up to about 0.1 s


class ClaimBackoff:
    """The backoff of one node. `has_peers` tells whether other nodes receive the same hints."""

    def __init__(self, clock: Clock, has_peers: Callable[[], bool]) -> None:
        self._clock = clock
        self._has_peers = has_peers
        self._empty_claims = 0

    def note(self, *, found: bool) -> None:
        """Record whether a claim or a check found a task."""
        self._empty_claims = 0 if found else min(self._empty_claims + 1, _MOST)

    @property
    def is_behind(self) -> bool:
        """Whether other nodes were faster last time."""
        return self._empty_claims > 0 and self._has_peers()

    def seconds(self) -> float:
        """Return the seconds to wait before the next claim."""
        return self._clock.chance() * _FIRST * (1 << self._empty_claims) if self._has_peers() else 0.0

    def late(self) -> float:
        """Return the wait before a due time that all nodes know; 0 if the last claim found a task."""
        return self.seconds() if self._empty_claims else 0.0
