"""Capacity: how many tasks a node may claim now, in total and per queue. Pure bookkeeping."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from ..model.task import Task
from .lanes import Lane


class Capacity:
    """Counts tasks in progress. Every reserved task is dropped exactly once."""

    def __init__(self, concurrency: int, lanes: Mapping[str, Lane], keyed: Collection[str]) -> None:
        self.concurrency = concurrency
        self.worth_a_claim = max(1, concurrency // 4)  # with fewer free slots, a claim waits briefly for more
        self.in_progress = 0
        self._lanes = lanes
        self._keyed = keyed
        self._busy: Counter[str] = Counter()  # in progress, by queue
        self._without_slot: Counter[str] = Counter()  # claimed from keyed queues, no rate-limit slot yet

    def free(self, unwritten: int) -> int:
        """Return the number of free slots; 0 while too many results are unwritten."""
        return max(0, min(self.concurrency - self.in_progress, 2 * self.concurrency - self.in_progress - unwritten))

    def of(self, queue: str, room: int) -> int:
        """Return how many of `room` the queue's own limit allows; 0 while claimed tasks lack their slots."""
        if self._without_slot[queue]:
            return 0
        cap = self._lanes[queue].concurrency
        return room if cap is None else max(0, min(room, cap - self._busy[queue]))

    def reserve(self, tasks: Collection[Task]) -> None:
        """Occupy a slot for each of these tasks."""
        for task in tasks:
            self._busy[task.queue] += 1
            if task.queue in self._keyed:
                self._without_slot[task.queue] += 1
        self.in_progress += len(tasks)

    def have_slots(self, tasks: Iterable[Task]) -> bool:
        """Record that these tasks have rate-limit slots. Return whether this may free their queues."""
        keyed = [task.queue for task in tasks if task.queue in self._keyed]
        self._without_slot.subtract(keyed)
        return bool(keyed)

    def drop(self, task: Task) -> None:
        """Free the task's slot."""
        self._busy[task.queue] -= 1
        self.in_progress -= 1

    @property
    def is_worth_a_look(self) -> bool:
        """Whether a waiting claim should continue: nothing is in progress, or just enough slots are free."""
        return not self.in_progress or self.concurrency - self.in_progress == self.worth_a_claim

    def was_full(self, queue: str) -> bool:
        """Whether the task that was just dropped freed its queue's last slot."""
        return self._busy[queue] + 1 == self._lanes[queue].concurrency
