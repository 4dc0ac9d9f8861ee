"""Kept messages, worked through after all: behind a squad's work, or with a person's word on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import orjson

from ...model.outcome import Outcome
from ...model.task import Task, TaskId, Transition
from ...store.port import Step, Store
from ..domain import Speaker
from .repository import ConversationMessage
from .timers import TRIES

_FIELDS = ("message", "tenant", "conversation", "speaker", "text", "sent_at", "verdict")


class RerunPipeline(Protocol):
    """The pipeline."""

    async def work(self, spoken: ConversationMessage) -> Outcome:
        """Work through one message."""


class RerunHandler:
    """The handler of kind `rehearing`."""

    listens = False

    def __init__(self, store: Store, pipeline: RerunPipeline) -> None:
        self._store = store
        self._pipeline = pipeline

    async def load(self, tasks: Sequence[Task]) -> Mapping[TaskId, ConversationMessage]:
        """The messages, as they were heard the first time."""
        rows = await self._store.load("message_rerun_load", [task.id for task in tasks])
        return {id_: message_from_row(dict(zip(_FIELDS, fields, strict=True))) for id_, *fields in rows}

    def effects(self, moves: Sequence[tuple[Task, Transition]]) -> Sequence[Step]:
        """Nothing: what a message comes to, the pipeline writes."""
        return ()

    async def run(self, task: Task, content: Any) -> Outcome:
        """As if it had just been said, but what was understood is judged by when it was."""
        spoken: ConversationMessage = content
        return await self._pipeline.work(spoken._replace(is_last_try=task.attempts >= TRIES))


def message_from_row(row: Mapping[str, Any]) -> ConversationMessage:
    """A message from its hearing."""
    who = orjson.loads(row["speaker"])
    speaker = Speaker(who["id"], who["name"], who["squad"], who["role"])
    return ConversationMessage(
        row["message"],
        row["tenant"],
        who["source"],
        row["conversation"],
        who["chat"],
        speaker,
        row["text"],
        row["sent_at"],
        row.get("verdict"),
    )
