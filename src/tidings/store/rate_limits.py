"""Rate limits as reserved send times: evenly spaced, no bursts, at most a quarter second ahead. Pure.

A limit is the receiver's, and applies where messages arrive. Network delays vary, so slots are slightly
further apart than the limit requires: it holds even if some messages arrive up to `ARRIVAL_SPREAD` later than
others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from ..model.task import Task, TaskId
from ..model.time import SECOND

MAX_AHEAD = 250_000  # microseconds that one claim may reserve
ARRIVAL_SPREAD = 50_000  # microseconds by which network delays may differ


def slot_interval(interval: int) -> int:
    """Return the interval between sends with which the limit holds at the receiver.

    Within a second plus the spread there are then no more sends than the limit allows per second; a limit
    below one per second adds the spread once.
    """
    return interval + min(interval, SECOND) * ARRIVAL_SPREAD // SECOND


class RateLimitState(NamedTuple):
    """The rate limit of a queue: its interval, and the next free slot."""

    interval: int
    next_at: int

    @property
    def step(self) -> int:
        """The interval between two sends."""
        return slot_interval(self.interval)

    def allowance(self, now: int) -> int:
        """Return the number of slots between now and the horizon."""
        first = max(self.next_at, now)
        horizon = now + MAX_AHEAD
        return 0 if first > horizon else (horizon - first) // self.step + 1


def reserve_slots(
    states: Mapping[str, RateLimitState], tasks: Sequence[Task], keyed: Collection[str], now: int
) -> tuple[list[Task], dict[str, int]]:
    """Return the tasks with send times (except for keyed queues), and the next free slot of each queue."""
    timed, free = list[Task](), dict[str, int]()
    for task in tasks:
        if task.queue in states and task.queue not in keyed:
            at = free.get(task.queue) or max(states[task.queue].next_at, now)
            free[task.queue] = at + states[task.queue].step
            timed.append(task._replace(start_at=at))
        else:
            timed.append(task)
    return timed, free


class SlotAssignment(NamedTuple):
    """Send times for tasks of a queue with a rate limit whose recipients have rate limits, too."""

    now: int
    starts: Mapping[TaskId, int]
    waits: Mapping[TaskId, int]  # tasks without a slot, and when their recipients are free
    next_at: int  # the queue's next free slot
    free_at: Mapping[str, int]  # the next free slots of recipients that got one


def assign_slots(
    state: RateLimitState, line: Sequence[tuple[TaskId, str]], free_at: Mapping[str, int], gap: int, now: int
) -> SlotAssignment:
    """Assign each slot to the first task in line whose recipient is free by then.

    A slot stays empty only if a recipient is free at the next one. Tasks without a slot cost the queue
    nothing.
    """
    at = max(state.next_at, now)
    patience = min(state.step, MAX_AHEAD)
    free = {key: free_at.get(key, 0) for _, key in line}
    waiting, starts = list(line), dict[TaskId, int]()
    while waiting:
        task, key = next((one for one in waiting if free[one[1]] <= at), None) or min(
            waiting, key=lambda one: free[one[1]]
        )
        if free[key] > at + patience:
            break
        at = max(at, free[key])
        waiting.remove((task, key))
        starts[task], free[key] = at, at + slot_interval(gap)
        at += state.step
    taken = {key for task, key in line if task in starts}
    return SlotAssignment(
        now,
        starts,
        {task: free[key] for task, key in waiting},
        at if starts else state.next_at,
        {key: free[key] for key in taken},
    )
