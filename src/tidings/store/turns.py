"""Turns as statements: what is read before they are shared out, and what is written down of them."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from ..model.task import TaskId
from .pacing import Pace, Turns
from .port import Row, Step


def pace_of(held: Sequence[Row]) -> Pace:
    """The queue's rate; where another node has just taken it away, there is none."""
    return Pace(held[0]["interval"], held[0]["next_at"]) if held else Pace(1, 0)


def when_free(queue: str, line: Sequence[tuple[TaskId, str]]) -> Step:
    """When the recipients in this line are free."""
    keys = orjson.dumps(sorted({key for _, key in line})).decode()
    return Step("pace_hold", {"queue": queue, "keys": keys})


def taken(queue: str, turns: Turns) -> list[Step]:
    """The instants are reserved, the queue's and the recipients'."""
    if not turns.starts:
        return []
    free = orjson.dumps([{"key": key, "at": at} for key, at in turns.free_at.items()]).decode()
    return [
        Step("limit_take", {"queue": queue, "next_at": turns.next_at}),
        Step("pace_keep", {"queue": queue, "free": free}),
    ]
