"""Flow control: how many tasks of each channel may be claimed and published now.

The limit is set as the cap of the channel's lane. It is 0 while the window is full, while no transport
consumes the channel's batches, and while the broker is unavailable.

At most one second of work is published ahead, so that a pause takes effect quickly: the throughput of the
last second is the window of the next one. A channel that responds faster gets a larger window each time,
until all its slots are in use or its responses take a second.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from ..kernel.lanes import Lane
from .context import DispatchContext

MIN_WINDOW = 50  # two batches: less would not allow a measurement


def next_window(now: int, *, done: int, most_in_flight: int, slots: int) -> int:
    """Return the next window, from the tasks done and the most in flight within the last second. Pure."""
    least = min(MIN_WINDOW, slots)
    if most_in_flight < now // 2 and done <= now:
        return now  # the window was not used up, so it stays
    return max(least, min(slots, max(done, now // 2)))


def dispatched_lane(lane: Lane, cap: int) -> Lane:
    """Return a lane whose attempts are made by transports: they report starts, and the window is its cap."""
    made = replace(lane, concurrency=cap)
    object.__setattr__(made, "marks_start", False)
    return made


class FlowControl:
    """The windows of one node. `can_publish` tells whether the broker is available."""

    def __init__(
        self,
        context: DispatchContext,
        limits: Mapping[str, int],  # maximum in flight by channel
        *,
        can_publish: Callable[[], bool],
        opened: Callable[[], None],  # called when a cap of 0 is raised
    ) -> None:
        self._lanes, self._queues = context.lanes, context.queues
        self._monotonic = context.clock.monotonic
        self._limits = limits
        self._can_publish = can_publish
        self._opened = opened
        self._windows = {queue: min(MIN_WINDOW, limits[queue]) for queue in self._queues}
        self._in_flight: Counter[str] = Counter()
        self._most: Counter[str] = Counter()  # maximum in flight since the last adjustment
        self._done: Counter[str] = Counter()  # since the last adjustment
        self._unserved: dict[str, float] = {}  # channels without transports, until when to wait

    @property
    def unserved(self) -> list[str]:
        """The channels whose messages no transport accepts."""
        return sorted(self._unserved)

    def add(self, queues: Collection[str]) -> None:
        """Count tasks as in flight, one for each name."""
        self._in_flight.update(queues)
        for queue in set(queues):
            self._most[queue] = max(self._most[queue], self._in_flight[queue])
            self._set(queue)

    def remove(self, queue: str) -> None:
        self._in_flight[queue] -= 1
        self._set(queue)

    def note_done(self, queue: str) -> None:
        self._done[queue] += 1

    def is_served(self, queue: str) -> None:
        self._unserved.pop(queue, None)

    def suspend(self, queue: str, seconds: float) -> bool:
        """Stop publishing for a while, because no transport consumed a batch. Return True the first time."""
        is_new = queue not in self._unserved
        self._unserved[queue] = self._monotonic() + seconds
        self._windows[queue] = min(MIN_WINDOW, self._limits[queue])
        return is_new

    def adjust(self) -> None:
        """Adjust the window of each channel; called once a second."""
        for queue in self._queues:
            self._windows[queue] = next_window(
                self._windows[queue],
                done=self._done[queue],
                most_in_flight=self._most[queue],
                slots=self._limits[queue],
            )
            self._most[queue] = self._in_flight[queue]
        self._done.clear()
        self.set_all()

    def set_all(self) -> None:
        for queue in self._queues:
            self._set(queue)

    def _set(self, queue: str) -> None:
        """Set one cap. A full window reopens when a third is free, so that claims and batches stay large."""
        window, in_flight = self._windows[queue], self._in_flight[queue]
        was_closed = self._lanes[queue].concurrency == 0
        is_full = in_flight >= (window * 2 // 3 if was_closed else window)
        is_suspended = bool(self._unserved) and self._unserved.get(queue, 0.0) > self._monotonic()
        cap = 0 if is_full or is_suspended or not self._can_publish() else window
        if self._lanes[queue].concurrency != cap:
            self._lanes[queue] = dispatched_lane(self._lanes[queue], cap)
            if was_closed:
                self._opened()
