"""What a send was answered with, kept so that a later call-back finds its message. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import orjson

from ...model.task import State, Task, Transition
from ...store.port import Step
from .receipt import Reader, named


def expected(moves: Sequence[tuple[Task, Transition]], readers: Mapping[str, Reader]) -> list[Step]:
    """One statement for all messages that were sent on channels whose providers call back."""
    found: dict[tuple[str, str], dict[str, object]] = {}
    for task, move in moves:
        reader = readers.get(task.queue)
        if reader is None or move.to is not State.DONE or not move.detail:
            continue
        names = [name for name in reader.names(move.detail) if named(name)]
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
