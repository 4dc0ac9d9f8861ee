"""Rate limits as reserved send instants: paced, never a burst, at most a quarter second ahead. Pure.

A limit is the receiver's, and counts where messages arrive. The way there takes now longer and now shorter,
so instants are a little further apart than the limit says: what leaves by them keeps the limit even when some
arrive up to `ARRIVAL_SPREAD` later than others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from ..model.task import Task, TaskId
from ..model.time import SECOND

MAX_AHEAD = 250_000  # microseconds of allowance that one claim may take
ARRIVAL_SPREAD = 50_000  # microseconds by which one message's way may be longer than another's


def slot_interval(interval: int) -> int:
    """How far apart sends must be, so that the limit holds where they arrive.

    Within a second and the spread there are then no more than the limit allows in a second; a limit of less
    than one a second needs the spread once.
    """
    return interval + min(interval, SECOND) * ARRIVAL_SPREAD // SECOND


class RateLimitState(NamedTuple):
    """A queue's rate as it stands: the interval that its limit says, and the next free instant."""

    interval: int
    next_at: int

    @property
    def step(self) -> int:
        """From one send to the next."""
        return slot_interval(self.interval)

    def allowance(self, now: int) -> int:
        """How many instants lie between now and the horizon."""
        first = max(self.next_at, now)
        horizon = now + MAX_AHEAD
        return 0 if first > horizon else (horizon - first) // self.step + 1


def reserve_slots(
    paces: Mapping[str, RateLimitState], tasks: Sequence[Task], keyed: Collection[str], now: int
) -> tuple[list[Task], dict[str, int]]:
    """The tasks with their send instants, but for keyed queues; and the next free instant of each queue."""
    timed, free = list[Task](), dict[str, int]()
    for task in tasks:
        if task.queue in paces and task.queue not in keyed:
            at = free.get(task.queue) or max(paces[task.queue].next_at, now)
            free[task.queue] = at + paces[task.queue].step
            timed.append(task._replace(start_at=at))
        else:
            timed.append(task)
    return timed, free


class SlotAssignment(NamedTuple):
    """Who starts when, where a queue has a rate and each recipient one of its own."""

    now: int
    starts: Mapping[TaskId, int]
    waits: Mapping[TaskId, int]  # the others, and when their recipients are free
    next_at: int  # the queue's next free instant
    free_at: Mapping[str, int]  # the recipients' next free instants, of those who got a turn


def assign_slots(
    pace: RateLimitState, line: Sequence[tuple[TaskId, str]], free_at: Mapping[str, int], gap: int, now: int
) -> SlotAssignment:
    """Give each instant to the first in the line whose recipient is free by then.

    An instant is left empty only if somebody's recipient is free at the next one. Whoever gets none costs
    the queue nothing.
    """
    at = max(pace.next_at, now)
    patience = min(pace.step, MAX_AHEAD)
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
        at += pace.step
    taken = {key for task, key in line if task in starts}
    return SlotAssignment(
        now,
        starts,
        {task: free[key] for task, key in waiting},
        at if starts else pace.next_at,
        {key: free[key] for key in taken},
    )
