"""Windows: at most one second of work is given away per channel, so that a pause is soon a pause. Pure.

What was done in the last second is what may be in flight in the next one. A channel that answers within a
second so gets more and more, until its slots are all in use or its answers take a second.
"""

from __future__ import annotations

MIN_WINDOW = 50  # two parcels: below that, nothing could be learned


def next_window(now: int, *, done: int, most_in_flight: int, slots: int) -> int:
    """How much may be in flight next, after a second in which so much was done and was in flight."""
    least = min(MIN_WINDOW, slots)
    if most_in_flight < now // 2 and done <= now:
        return now  # it was not used up, so nothing was learned about it
    return max(least, min(slots, max(done, now // 2)))
