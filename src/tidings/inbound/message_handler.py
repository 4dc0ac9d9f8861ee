"""The task handler of inbound messages, strictly in order per conversation.

A `MessageProcessor` handles the message. It may commit the message's end together with its own effects
(`end_message_step`); a second run then finds the end and does nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple, Protocol

import orjson

from ..kernel.breaker import BreakerRule
from ..kernel.lanes import Lane
from ..kernel.retry import Backoff, RetryPolicy, RetryRule
from ..model.outcome import Done, Outcome, Skip
from ..model.task import OnUnknown, Task, TaskId, TaskState, Transition
from ..store.port import Step, Store
from .admission import CHANGES
from .domain import ConversationMessage, IncomingKind, Speaker
from .ingestion import QUEUE

TRIES = 3
POLICY = RetryPolicy(
    "inbound", RetryRule(TRIES, Backoff.TABLE, table=(timedelta(seconds=30), timedelta(minutes=2)), jitter=0.1)
)
NO_WORKFLOW = "no workflow is configured"
MARKED = "the original message is marked"
FOREIGN_CHANGE = "ignored: the original message has another author or conversation"


class MessageProcessor(Protocol):
    """Handles messages."""

    async def work(self, spoken: ConversationMessage) -> Outcome:
        """Handle one message."""


class MessageChange(NamedTuple):
    """An edit or deletion; it runs after the message that it changes."""

    place: int
    message: str
    tenant: str
    source: str
    conversation: str
    chat: str
    original: str  # the platform's id of the message that it changes
    text: str | None  # the new text; None: deleted
    sent_at: int
    is_last_try: bool = False
    sender: str = ""  # empty if the platform does not say who deleted the message


class ChangeProcessor(Protocol):
    """Handles edits and deletions."""

    async def handle_change(self, item: MessageChange) -> Outcome:
        """Handle one edit or deletion."""


class NoWorkflowProcessor:
    """The processor without workflows: messages are only stored."""

    async def work(self, spoken: ConversationMessage) -> Outcome:
        """Do nothing."""
        return Done(NO_WORKFLOW)

    async def handle_change(self, item: MessageChange) -> Outcome:
        """Do nothing."""
        return Done(MARKED)


def lane() -> Lane:
    """Return the lane of inbound messages; a failed message does not block its conversation."""
    return Lane(
        QUEUE,
        policy=POLICY,
        on_unknown=OnUnknown.RESEND,
        deadline=timedelta(minutes=3),
        breaker=BreakerRule(threshold=1 << 30),
    )


def end_message_step(spoken: ConversationMessage, reason: str | None = None) -> Step:
    """Return the step that ends a message; the transaction raises WriteConflict if it had ended before."""
    return Step("inbox_end", {"n": spoken.place, "ended": "done", "reason": reason}, needed=True)


class InboundMessageHandler:
    """The task handler of inbound messages, edits and deletions."""

    listens = True

    def __init__(self, store: Store, processor: MessageProcessor, changes: ChangeProcessor | None = None) -> None:
        self._store = store
        self._processor = processor
        self._changes = changes or NoWorkflowProcessor()

    async def load(self, tasks: Sequence[Task]) -> Mapping[TaskId, ConversationMessage | MessageChange | Done | Skip]:
        """Load the messages of these tasks, or the outcome of those that need no handling."""
        by_id = {task.id: task for task in tasks}
        rows = await self._store.load("inbox_load", list(by_id))
        return {row[0]: _content(row, by_id[row[0]]) for row in rows}

    def log_ids(self, content: Any) -> Mapping[str, str]:
        """Return the id of the inbound message and its source."""
        is_known = isinstance(content, ConversationMessage | MessageChange)
        return {"inbound": content.message, "source": content.source} if is_known else {}

    async def run(self, task: Task, content: Any) -> Outcome:
        """Handle one message, edit or deletion."""
        if isinstance(content, Done | Skip):
            return content
        if not isinstance(content, MessageChange):
            return await self._processor.work(content)
        if await self._is_foreign(content):
            return Skip(FOREIGN_CHANGE)
        return await self._changes.handle_change(content)

    async def _is_foreign(self, item: MessageChange) -> bool:
        """Return whether the original message has another author or conversation."""
        found = await self._store.read("inbox_original", source=item.source, original=item.original)
        return bool(found) and not may_change(item, found[0])

    def effects(self, moves: Sequence[tuple[Task, Transition]]) -> Sequence[Step]:
        """Return the steps that end the messages and publish the events of failed ones."""
        over = [
            {
                "task": move.id, "claim_no": move.claim_no, "state": move.to.value,
                "ended": _ENDS[move.to], "reason": move.detail,
            }
            for _, move in moves
            if move.to in _ENDS
        ]  # fmt: skip
        if not over:
            return ()
        told = {"moves": orjson.dumps(over).decode()}
        steps = [Step("inbox_moves", told)]
        return [*steps, Step("inbox_publish", told)] if any(one["ended"] is None for one in over) else steps


_ENDS: Mapping[TaskState, str | None] = {TaskState.DONE: "done", TaskState.CANCELLED: "skipped", TaskState.FAILED: None}


def may_change(item: MessageChange, original: Mapping[str, Any]) -> bool:
    """Return whether the author changes a message in its chat; some platforms do not say who deletes."""
    is_authors = item.sender == original["sender"] or (item.sender == "" and item.text is None)
    return is_authors and item.chat == original["chat"]


def _content(row: Sequence[Any], task: Task) -> ConversationMessage | MessageChange | Done | Skip:
    (_, n, id_, tenant, source, conversation, chat, platform_id, sender, text, sent_at, reply_to, speaks_for,
     edited_at, deleted_at, over, reason, kind, original, *person) = row  # fmt: skip
    if over is not None:
        return Done(reason)  # its end was committed with its effects, before this task was settled
    is_last_try = task.attempts >= TRIES
    if kind in CHANGES:
        new = text if kind == IncomingKind.EDIT else None
        return MessageChange(
            n, id_, tenant, source, conversation, chat, original or "", new, sent_at, is_last_try, sender
        )
    if deleted_at is not None:
        return Skip("its sender deleted it before it was handled")
    if person[0] is None:
        return Skip(f"{speaks_for or sender} is no longer on the roster")
    return ConversationMessage(
        id_, tenant, source, conversation, chat, Speaker(*person), text, sent_at, is_last_try=is_last_try,
        reply_to=reply_to, place=n, platform_id=platform_id, sender=sender, attempt=task.attempts,
        is_edited=edited_at is not None,
    )  # fmt: skip
