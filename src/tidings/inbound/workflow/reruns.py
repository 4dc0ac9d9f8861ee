"""Re-runs: handles deferred messages after their release, in order or with a person's verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from ...kernel.handler import SelfWritingHandler
from ...model.outcome import Outcome
from ...model.task import Task, TaskId
from ...store.port import Store
from ..domain import ConversationMessage, Speaker
from .repository import MessagePipeline
from .timers import TRIES

_FIELDS = ("message", "tenant", "conversation", "speaker", "text", "sent_at", "verdict")


class RerunHandler(SelfWritingHandler):
    """The task handler of released messages."""

    def __init__(self, store: Store, pipeline: MessagePipeline) -> None:
        self._store = store
        self._pipeline = pipeline

    async def load(self, tasks: Sequence[Task]) -> Mapping[TaskId, ConversationMessage]:
        """Load the messages as they were first handled."""
        rows = await self._store.load("message_rerun_load", [task.id for task in tasks])
        return {id_: message_from_row(dict(zip(_FIELDS, fields, strict=True))) for id_, *fields in rows}

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


def original_of(row: Mapping[str, Any]) -> str | None:
    """Return the id of the message that a handled message edits or deletes."""
    if '"changes"' not in row["facts"]:
        return None
    return next((fact["message"] for fact in orjson.loads(row["facts"]) if fact["what"] == "changes"), None)
