"""Stagger: many nodes hear the same hint, and one of them is enough.

Whoever found something last follows the next hint at once; one that came for nothing waits a little longer
each time. So a quiet fleet does the work of one node, and a busy one still has everybody: a full claim hints
again, and whoever finds something then is quick as well.
"""

from __future__ import annotations

from collections.abc import Callable

from .clock import Clock

_FIRST = 0.003  # seconds, at the most, for one that found something
_MOST = 5  # times that this is doubled: a tenth of a second


class ClaimBackoff:
    """One node's. `has_peers`: whether others hear hints, too."""

    def __init__(self, clock: Clock, has_peers: Callable[[], bool]) -> None:
        self._clock = clock
        self._has_company = has_peers
        self._in_vain = 0

    def note(self, *, found: bool) -> None:
        """A claim or a look brought something, or nothing."""
        self._in_vain = 0 if found else min(self._in_vain + 1, _MOST)

    @property
    def is_behind(self) -> bool:
        """Whether others were quicker the last time."""
        return self._in_vain > 0 and self._has_company()

    def seconds(self) -> float:
        """How long to wait before the next claim, so that another may be first."""
        return self._clock.chance() * _FIRST * (1 << self._in_vain) if self._has_company() else 0.0

    def late(self) -> float:
        """The same for an instant that all know: whoever found something last is punctual."""
        return self.seconds() if self._in_vain else 0.0
