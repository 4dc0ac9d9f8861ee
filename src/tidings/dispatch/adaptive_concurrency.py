"""Adaptive concurrency: how many tasks of a channel may be in flight. Pure.

At most one second of work is published ahead, so that a pause takes effect quickly: the throughput of the
last second is the window of the next one. A channel that responds faster gets a larger window each time,
until all its slots are in use or its responses take a second.
"""

from __future__ import annotations

MIN_WINDOW = 50  # two batches: less would not allow a measurement


def next_window(now: int, *, done: int, most_in_flight: int, slots: int) -> int:
    """Return the next window, from the tasks done and the most in flight within the last second."""
    least = min(MIN_WINDOW, slots)
    if most_in_flight < now // 2 and done <= now:
        return now  # the window was not used up, so it stays
    return max(least, min(slots, max(done, now // 2)))
