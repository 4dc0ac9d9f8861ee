"""Rate limits as reserved send instants: paced, never a burst, at most a quarter second ahead."""

from __future__ import annotations

from typing import NamedTuple

AHEAD = 250_000  # microseconds of allowance that one claim may take


class Pace(NamedTuple):
    """A queue's rate as it stands: the least time between sends, and the next free instant."""

    interval: int
    next_at: int

    def allowance(self, now: int) -> int:
        """How many instants lie between now and the horizon."""
        first = max(self.next_at, now)
        horizon = now + AHEAD
        return 0 if first > horizon else (horizon - first) // self.interval + 1

    def instants(self, now: int, count: int) -> tuple[list[int], int]:
        """Exactly `count` send instants, and the next free one after them."""
        first = max(self.next_at, now)
        return [first + i * self.interval for i in range(count)], first + count * self.interval
