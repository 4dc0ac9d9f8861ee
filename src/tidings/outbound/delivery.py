"""Delivery: what the kernel runs for a message. Loads in batches, asks the channel to send one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import orjson

from ..model.message import Message
from ..model.outcome import Defer, Done, Outcome, Retry, Skip, Unknown
from ..model.task import Category, OnUnknown, State, Task, TaskId, Transition
from ..model.time import micros
from ..store.port import Step, Store
from .adoption.shadows import digest
from .channels.base import Channel
from .events import telling
from .events.listeners import Listeners
from .objections import SHADOWED, objection

_ENDS: Mapping[State, tuple[str, ...]] = {  # what a move out of `processing` may be told as
    State.DONE: ("message.sent",),
    State.FAILED: ("message.failed", "message.held"),
    State.CANCELLED: ("message.cancelled", "message.skipped"),
    State.PENDING: ("message.cancelled",),  # if a person had asked for it meanwhile
}

_CLEAR = (None, None, None, None)  # nothing that might keep a message from being sent


class Delivery:
    """The handler of kind `message`."""

    def __init__(
        self,
        store: Store,
        channels: Mapping[str, Channel],
        *,
        now: Callable[[], int],
        listeners: Listeners | None = None,
    ) -> None:
        self._store = store
        self._channels = channels
        self._now = now
        self._listeners = listeners

    async def load(self, tasks: Sequence[Task]) -> Mapping[TaskId, Message | Skip | Defer]:
        """The messages of these tasks, or why one is not to be sent."""
        tries = {task.id: task.tries for task in tasks}
        rows = await self._store.load("message_load", list(tries))
        loaded = {
            row[0]: (row[7:11] != _CLEAR and objection(row[4], *row[7:11], now=self._now))
            or Message(row[1], row[2], row[3], row[4], orjson.loads(row[5]), row[6], tries[row[0]], row[11])
            for row in rows
        }
        if shadowed := [row for row in rows if loaded[row[0]] is SHADOWED]:
            await self._note(shadowed)
        return loaded

    async def _note(self, rows: Sequence[Sequence[Any]]) -> None:
        """What would have been sent, before it ends as skipped; a second time changes nothing."""
        noted = [{"task": row[0], "digest": digest(orjson.loads(row[5]))} for row in rows]
        await self._store.write([Step("shadow_ours", {"rows": orjson.dumps(noted).decode()})])

    @property
    def listens(self) -> bool:
        """Whether anybody is to be told of what becomes of messages."""
        return self._listeners is not None and self._listeners.are_there

    def effects(self, moves: Sequence[tuple[Task, Transition]]) -> Sequence[Step]:
        """The events of these moves, in one statement, where somebody wants them."""
        assert self._listeners is not None
        told = [
            {"id": move.id, "claim_no": move.claim_no, "state": move.to, "detail": move.detail}
            for task, move in moves
            if task.queue != telling.CHANNEL and self._listeners.are_told(task.tenant, _ENDS[move.to])
        ]
        return [Step("outbox_moves", {"moves": orjson.dumps(told).decode()})] if told else ()

    async def run(self, task: Task, content: Any) -> Outcome:
        """One attempt; for `ask`, an attempt in doubt is looked up before anything is sent again."""
        if type(content) is not Message:
            return content  # type: ignore[no-any-return]  # Skip or Defer
        message = content
        channel = self._channels[task.queue]
        traits = channel.traits
        if task.unknown and traits.on_unknown is OnUnknown.ASK:
            found = await channel.lookup(message)
            if isinstance(found, Done | Unknown):
                return found
        if traits.per_recipient is not None:
            gap = {"queue": task.queue, "key": message.recipient, "gap": micros(traits.per_recipient)}
            too_early = await self._too_early(gap)
            if too_early is not None:
                return too_early
        outcome = await channel.send(message)
        return outcome if message.retry_in is None else _retried_in(outcome, message.retry_in)

    async def _too_early(self, gap: dict[str, Any]) -> Defer | None:
        """Reserve this recipient's next start, or say when it is."""
        if (await self._store.write([Step("pace_take", gap)]))[0]:
            return None
        rows = await self._store.read("pace_find", queue=gap["queue"], key=gap["key"])
        until = rows[0]["next_at"] if rows else 0
        return Defer(until, "this recipient gets one message at a time on this channel")


def _retried_in(outcome: Outcome, length: int) -> Outcome:
    """The sender's own wait between two tries (B6), unless the other side or its limits say otherwise."""
    if not isinstance(outcome, Retry) or outcome.category is Category.THROTTLING:
        return outcome
    if outcome.after is not None or outcome.whole_channel:
        return outcome
    return replace(outcome, after=timedelta(microseconds=length))
