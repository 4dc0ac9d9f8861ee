"""Hearing: what the kernel runs for a message that came in. Strictly in order per conversation.

The handler that understands a message is a port. It may write the message's end with its own effects in one
transaction (`end_message_step`); a second run then finds it and does nothing.
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
from .domain import IncomingKind, Speaker
from .ingestion import QUEUE

TRIES = 3
POLICY = RetryPolicy(
    "inbound",
    RetryRule(TRIES, Backoff.TABLE, table=(timedelta(seconds=30), timedelta(minutes=2)), jitter=0.1),
)
NO_WORKFLOW = "no workflow is configured"
MARKED = "the message it belongs to is marked"
FOREIGN_CHANGE = "it is ignored: the message is of another author or of another conversation"


class InboxMessage(NamedTuple):
    """One message, as it is to be understood."""

    n: int  # its place in the inbox
    id: str
    tenant: str
    source: str
    conversation: str  # unique over all sources; the order key
    chat: str  # the platform's name of it
    platform_id: str
    sender: str  # who typed it
    name: str
    text: str  # the newest, if it was edited
    sent_at: int
    received_at: int
    reply_to: str | None
    attachments: int
    speaker: Speaker  # who it counts as
    is_edited: bool = False
    attempt: int = 1
    is_last_try: bool = False


class MessageProcessor(Protocol):
    """Understands a message and does what follows from it."""

    async def hear(self, item: InboxMessage) -> Outcome:
        """One attempt."""


class MessageChange(NamedTuple):
    """An edit or a delete, whose turn comes when the message it is about has had its own."""

    n: int
    id: str
    tenant: str
    source: str
    conversation: str
    chat: str
    original: str  # the platform's id of that message
    text: str | None  # as it reads now; None: it is deleted
    sent_at: int
    is_last_try: bool = False
    sender: str = ""  # who changes it; empty where the platform does not say who deletes


class ChangeProcessor(Protocol):
    """Does what still can be done about a message that was changed."""

    async def handle_change(self, item: MessageChange) -> Outcome:
        """One attempt."""


class NoWorkflowProcessor:
    """What happens without workflows: the message is kept, and done."""

    async def hear(self, item: InboxMessage) -> Outcome:
        """Nothing to do."""
        return Done(NO_WORKFLOW)

    async def handle_change(self, item: MessageChange) -> Outcome:
        """Nothing to do."""
        return Done(MARKED)


def lane() -> Lane:
    """How they are handled; one that fails for good lets the next of its conversation go on."""
    return Lane(
        QUEUE,
        policy=POLICY,
        on_unknown=OnUnknown.RESEND,
        deadline=timedelta(minutes=3),
        breaker=BreakerRule(threshold=1 << 30),
    )


def end_message_step(item: InboxMessage, reason: str | None = None) -> Step:
    """The end of a message, for the transaction of what came of it; Outrun if it had ended before."""
    return Step("inbox_end", {"n": item.n, "ended": "done", "reason": reason}, needed=True)


class InboundMessageHandler:
    """The handler of kind `heard`."""

    listens = True

    def __init__(
        self, store: Store, hearing: MessageProcessor, changes: ChangeProcessor | None = None
    ) -> None:
        self._store = store
        self._hearing = hearing
        self._changes = changes or NoWorkflowProcessor()

    async def load(
        self, tasks: Sequence[Task]
    ) -> Mapping[TaskId, InboxMessage | MessageChange | Done | Skip]:
        """The messages of these tasks, or why one needs nothing."""
        by_id = {task.id: task for task in tasks}
        rows = await self._store.load("inbox_load", list(by_id))
        return {row[0]: _content(row, by_id[row[0]]) for row in rows}

    async def run(self, task: Task, content: Any) -> Outcome:
        """One attempt."""
        if isinstance(content, Done | Skip):
            return content
        if isinstance(content, MessageChange):
            return (
                Skip(FOREIGN_CHANGE)
                if await self._is_foreign(content)
                else await self._changes.handle_change(content)
            )
        return await self._hearing.hear(content)

    async def _is_foreign(self, item: MessageChange) -> bool:
        """Whether a change is not of the author or not of the conversation of the message it names."""
        found = await self._store.read("inbox_original", source=item.source, original=item.original)
        return bool(found) and not may_change(item, found[0])

    def effects(self, moves: Sequence[tuple[Task, Transition]]) -> Sequence[Step]:
        """How each ended, and the notice of what failed for good."""
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


_ENDS: Mapping[TaskState, str | None] = {
    TaskState.DONE: "done",
    TaskState.CANCELLED: "skipped",
    TaskState.FAILED: None,
}


def may_change(item: MessageChange, original: Mapping[str, Any]) -> bool:
    """Authors change their own messages, where they said them; some platforms do not say who deletes."""
    is_authors = item.sender == original["sender"] or (item.sender == "" and item.text is None)
    return is_authors and item.chat == original["chat"]


def _content(row: Sequence[Any], task: Task) -> InboxMessage | MessageChange | Done | Skip:
    (_, n, id_, tenant, source, conversation, chat, platform_id, sender, name, text, sent_at, received_at,
     reply_to, attachments, speaks_for, edited_at, deleted_at, over, reason, kind,
     original, *person) = row  # fmt: skip
    if over is not None:
        return Done(reason)  # its end was written with its effects, before this task was settled
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
    return InboxMessage(
        n, id_, tenant, source, conversation, chat, platform_id, sender, name, text, sent_at, received_at,
        reply_to, attachments, Speaker(*person), edited_at is not None, task.attempts, is_last_try,
    )  # fmt: skip
