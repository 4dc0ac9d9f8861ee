"""Room: how many tasks a node may take on now, over all and of each queue. Pure bookkeeping."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from ..model.task import Task
from .lanes import Lane


class Capacity:
    """Counts what is in hand. Whatever was reserved is dropped once, however it ends."""

    def __init__(self, slots: int, lanes: Mapping[str, Lane], keyed: Collection[str]) -> None:
        self.slots = slots
        self.worth_a_claim = max(1, slots // 4)  # with less than this free, a claim waits a moment for more
        self.in_hand = 0
        self._lanes = lanes
        self._keyed = keyed
        self._busy: Counter[str] = Counter()  # in hand, by queue
        self._turnless: Counter[str] = Counter()  # of keyed queues: claimed, and without an instant as yet

    def free(self, unwritten: int) -> int:
        """Free slots; none while results pile up that cannot be written."""
        return max(0, min(self.slots - self.in_hand, 2 * self.slots - self.in_hand - unwritten))

    def of(self, queue: str, room: int) -> int:
        """How many of `room` the channel's own cap leaves; none while the last ones have no instants yet."""
        if self._turnless[queue]:
            return 0
        cap = self._lanes[queue].cap
        return room if cap is None else max(0, min(room, cap - self._busy[queue]))

    def reserve(self, tasks: Collection[Task]) -> None:
        """From here on these hold their slots."""
        for task in tasks:
            self._busy[task.queue] += 1
            if task.queue in self._keyed:
                self._turnless[task.queue] += 1
        self.in_hand += len(tasks)

    def have_instants(self, tasks: Iterable[Task]) -> bool:
        """These know when they may go; True: a queue was held up by them, and may be free now."""
        keyed = [task.queue for task in tasks if task.queue in self._keyed]
        self._turnless.subtract(keyed)
        return bool(keyed)

    def drop(self, task: Task) -> None:
        """Its slot is free."""
        self._busy[task.queue] -= 1
        self.in_hand -= 1

    @property
    def is_worth_a_look(self) -> bool:
        """Whether whoever waits for room wants to know: nothing is in hand, or just enough is free."""
        return not self.in_hand or self.slots - self.in_hand == self.worth_a_claim

    def was_full(self, queue: str) -> bool:
        """Whether the last one that was dropped had its channel's last place: there may be more of it."""
        return self._busy[queue] + 1 == self._lanes[queue].cap
