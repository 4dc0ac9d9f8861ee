"""Remember provider message ids at send time, so that a callback finds its message. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import orjson

from ...model.task import Task, TaskState, Transition
from ...store.port import Step
from .base import CallbackReader, valid_name


def expect_receipts(moves: Sequence[tuple[Task, Transition]], readers: Mapping[str, CallbackReader]) -> list[Step]:
    """One step for all messages sent on channels with callbacks."""
    found: dict[tuple[str, str], dict[str, object]] = {}
    for task, move in moves:
        reader = readers.get(task.queue)
        if reader is None or move.to is not TaskState.DONE or not move.detail:
            continue
        names = [name for name in reader.names(move.detail) if valid_name(name)]
        for name in names:
            found.setdefault(
                (task.queue, name),
                {
                    "channel": task.queue,
                    "name": name,
                    "task": task.id,
                    "claim_no": move.claim_no,
                    "last": name is names[-1],
                },
            )
    return [Step("receipt_expect", {"names": orjson.dumps([*found.values()]).decode()})] if found else []
