"""Turns as statements: what is read before they are shared out, and what is written down of them."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from ..model.task import TaskId
from .port import Row, Step
from .rate_limits import RateLimitState, SlotAssignment


def read_rate_limit(held: Sequence[Row]) -> RateLimitState:
    """The queue's rate; where another node has just taken it away, there is none."""
    return RateLimitState(held[0]["interval"], held[0]["next_at"]) if held else RateLimitState(1, 0)


def read_free_times(queue: str, line: Sequence[tuple[TaskId, str]]) -> Step:
    """When the recipients in this line are free."""
    keys = orjson.dumps(sorted({key for _, key in line})).decode()
    return Step("recipient_rate_limit_lock", {"queue": queue, "keys": keys})


def reserve_steps(queue: str, turns: SlotAssignment) -> list[Step]:
    """The instants are reserved, the queue's and the recipients'."""
    if not turns.starts:
        return []
    free = orjson.dumps([{"key": key, "at": at} for key, at in turns.free_at.items()]).decode()
    return [
        Step("rate_limit_take", {"queue": queue, "next_at": turns.next_at}),
        Step("recipient_rate_limit_keep", {"queue": queue, "free": free}),
    ]
