"""Gates: how much of each channel may be claimed and given away now.

A channel's gate is a cap on its lane. It is shut while its window is full, while nobody takes what is given
away, and while there is no broker to give it to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from ..kernel.lanes import Lane
from .adaptive_concurrency import MIN_WINDOW, next_window


def dispatched_lane(lane: Lane, cap: int) -> Lane:
    """A lane whose attempts are made by transports: they say when they start, and a window caps it."""
    made = replace(lane, cap=cap)
    object.__setattr__(made, "marks_start", False)
    return made


class FlowControl:
    """One node's gates. `can_give` says whether the broker can be relied on."""

    def __init__(
        self,
        lanes: dict[str, Lane],
        queues: Collection[str],
        limits: Mapping[str, int],  # most in flight by channel
        *,
        monotonic: Callable[[], float],
        can_give: Callable[[], bool],
        opened: Callable[[], None],  # called when a gate that was shut is not any more
    ) -> None:
        self._lanes = lanes
        self._queues = queues
        self._limits = limits
        self._monotonic = monotonic
        self._can_give = can_give
        self._opened = opened
        self._windows = {queue: min(MIN_WINDOW, limits[queue]) for queue in queues}
        self._out: Counter[str] = Counter()
        self._most: Counter[str] = Counter()  # out at once since the last turn
        self._done: Counter[str] = Counter()  # since the last turn
        self._unserved: dict[str, float] = {}  # channels that no transport serves; until when they rest

    @property
    def unserved(self) -> list[str]:
        """The channels whose messages no transport takes."""
        return sorted(self._unserved)

    def give(self, queues: Collection[str]) -> None:
        """These are out from now on, one for each name."""
        self._out.update(queues)
        for queue in set(queues):
            self._most[queue] = max(self._most[queue], self._out[queue])
            self._set(queue)

    def take_back(self, queue: str) -> None:
        """One is not out any more."""
        self._out[queue] -= 1
        self._set(queue)

    def note_done(self, queue: str) -> None:
        """A transport did one."""
        self._done[queue] += 1

    def is_served(self, queue: str) -> None:
        """A transport was heard of."""
        self._unserved.pop(queue, None)

    def rest(self, queue: str, seconds: float) -> bool:
        """Nobody took what was given away, and claiming more only fills the history; True at first."""
        is_new = queue not in self._unserved
        self._unserved[queue] = self._monotonic() + seconds
        self._windows[queue] = min(MIN_WINDOW, self._limits[queue])
        return is_new

    def turn(self) -> None:
        """Once a second: the next window of each channel."""
        for queue in self._queues:
            self._windows[queue] = next_window(
                self._windows[queue],
                done=self._done[queue],
                most_in_flight=self._most[queue],
                slots=self._limits[queue],
            )
            self._most[queue] = self._out[queue]
        self._done.clear()
        self.set_all()

    def set_all(self) -> None:
        """Open or shut every gate."""
        for queue in self._queues:
            self._set(queue)

    def _set(self, queue: str) -> None:
        """A window that is full opens again when a good part of it is free: claims and parcels stay large."""
        window, out = self._windows[queue], self._out[queue]
        was_shut = self._lanes[queue].cap == 0
        is_full = out >= (window * 2 // 3 if was_shut else window)
        rests = bool(self._unserved) and self._unserved.get(queue, 0.0) > self._monotonic()
        cap = 0 if is_full or rests or not self._can_give() else window
        if self._lanes[queue].cap != cap:
            self._lanes[queue] = dispatched_lane(self._lanes[queue], cap)
            if was_shut:
                self._opened()
