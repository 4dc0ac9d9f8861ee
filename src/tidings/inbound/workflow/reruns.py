"""Re-runs: handles deferred messages after their release, in order or with a person's verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from ...model.outcome import Outcome
from ...model.task import Task, TaskId, Transition
from ...store.port import Step, Store
from ..domain import Speaker
from .repository import ConversationMessage, MessagePipeline
from .timers import TRIES

_FIELDS = ("message", "tenant", "conversation", "speaker", "text", "sent_at", "verdict")


class RerunHandler:
    """The task handler of released messages."""

    listens = False

    def __init__(self, store: Store, pipeline: MessagePipeline) -> None:
        self._store = store
        self._pipeline = pipeline

    async def load(self, tasks: Sequence[Task]) -> Mapping[TaskId, ConversationMessage]:
        """Load the messages as they were first handled."""
        rows = await self._store.load("message_rerun_load", [task.id for task in tasks])
        return {id_: message_from_row(dict(zip(_FIELDS, fields, strict=True))) for id_, *fields in rows}

    def effects(self, moves: Sequence[tuple[Task, Transition]]) -> Sequence[Step]:
        """Return nothing: the pipeline writes the result."""
        return ()

    async def run(self, task: Task, content: Any) -> Outcome:
        """Handle the message like a new one, but at its original time."""
        spoken: ConversationMessage = content
        return await self._pipeline.work(spoken._replace(is_last_try=task.attempts >= TRIES))


def message_from_row(row: Mapping[str, Any]) -> ConversationMessage:
    """Parse a message from its row of handled messages."""
    who = orjson.loads(row["speaker"])
    speaker = Speaker(who["id"], who["name"], who["squad"], who["role"])
    return ConversationMessage(
        row["message"], row["tenant"], who["source"], row["conversation"], who["chat"], speaker, row["text"],
        row["sent_at"], row.get("verdict"),
    )  # fmt: skip
