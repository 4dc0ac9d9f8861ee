"""The statements of rate limits: what is read before slots are assigned, and what is written afterwards."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from ..model.task import TaskId
from .port import Row, Step
from .rate_limits import RateLimitState, SlotAssignment


def read_rate_limit(held: Sequence[Row]) -> RateLimitState:
    """Return the queue's rate limit; none if another node has just removed it."""
    return RateLimitState(held[0]["interval"], held[0]["next_at"]) if held else RateLimitState(1, 0)


def read_free_times(queue: str, line: Sequence[tuple[TaskId, str]]) -> Step:
    """Return the step that reads when these recipients are free."""
    keys = orjson.dumps(sorted({key for _, key in line})).decode()
    return Step("recipient_rate_limit_lock", {"queue": queue, "keys": keys})


def reserve_steps(queue: str, slots: SlotAssignment) -> list[Step]:
    """Return the steps that reserve the slots of the queue and of the recipients."""
    if not slots.starts:
        return []
    free = orjson.dumps([{"key": key, "at": at} for key, at in slots.free_at.items()]).decode()
    return [
        Step("rate_limit_take", {"queue": queue, "next_at": slots.next_at}),
        Step("recipient_rate_limit_keep", {"queue": queue, "free": free}),
    ]
