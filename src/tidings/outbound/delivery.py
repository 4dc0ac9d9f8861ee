"""Delivery: what the kernel runs for a message. Loads in batches, asks the channel to send one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any

import orjson

from ..kernel.breaker import BreakerRule
from ..kernel.handler import Turn
from ..model.message import Message
from ..model.outcome import Defer, Done, Outcome, Retry, Skip, Unknown
from ..model.task import Category, OnUnknown, State, Task, TaskId, Transition
from ..model.time import micros
from ..store.pacing import spaced
from ..store.port import Step, Store
from .adoption.shadows import digest
from .channels.base import Channel
from .destinations import Destinations
from .events import telling
from .events.listeners import Listeners
from .lines import Lines
from .objections import SHADOWED, objection
from .receipts.expecting import expected
from .receipts.receipt import Reader

_ENDS: Mapping[State, tuple[str, ...]] = {  # what a move out of `processing` may be told as
    State.DONE: ("message.sent",),
    State.FAILED: ("message.failed", "message.held"),
    State.CANCELLED: ("message.cancelled", "message.skipped"),
    State.PENDING: ("message.cancelled",),  # if a person had asked for it meanwhile
}

_BUSY = "this recipient gets one message at a time on this channel"
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
        readers: Mapping[str, Reader] = MappingProxyType({}),
        destinations: Destinations | None = None,
    ) -> None:
        self._store = store
        self._channels = channels
        self._now = now
        self._listeners = listeners
        self._lines = Lines()
        self._destinations = destinations or Destinations(store, {}, rule=BreakerRule(), now=now)
        self._readers = readers  # of channels whose providers tell later what became of a message

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
        """Whether anybody is to be told of what becomes of messages, or will tell us."""
        return bool(self._readers) or (self._listeners is not None and self._listeners.are_there)

    def effects(self, moves: Sequence[tuple[Task, Transition]]) -> Sequence[Step]:
        """The events of these moves where somebody wants them, and the names by which receipts will come."""
        return [*self._told(moves), *expected(moves, self._readers)]

    def _told(self, moves: Sequence[tuple[Task, Transition]]) -> Sequence[Step]:
        if self._listeners is None or not self._listeners.are_there:
            return ()
        told = [
            {"id": move.id, "claim_no": move.claim_no, "state": move.to, "detail": move.detail}
            for task, move in moves
            if task.queue != telling.CHANNEL and self._listeners.are_told(task.tenant, _ENDS[move.to])
        ]
        return [Step("outbox_moves", {"moves": orjson.dumps(told).decode()})] if told else ()

    async def take_turns(self, tasks: Sequence[Task], contents: Mapping[TaskId, Any]) -> Mapping[TaskId, Any]:
        """An instant for each whose recipient is free; the others wait until it may be."""
        turns: dict[TaskId, Turn | Defer] = {}
        for queue, line in _lines(tasks, contents).items():
            traits = self._channels[queue].traits
            if traits.per_recipient is None:
                continue
            gap = micros(traits.per_recipient)
            taken = await self._store.take_turns(queue, [(task.id, key) for task, key in line], gap)
            turns |= {id_: Turn(at, contents[id_]) for id_, at in taken.starts.items()}
            for task, key in line:
                if task.id in taken.waits:
                    place = (queue, key, task.priority)
                    until = self._lines.place(place, taken.waits[task.id], spaced(gap), taken.now)
                    turns[task.id] = Defer(until, _BUSY)
        return turns

    async def move_turn(self, task: Task, turn: Turn, by: int | None) -> None:
        """Its recipient waits so much longer; or, for something that was not sent (None), no more."""
        gap = self._channels[task.queue].traits.per_recipient
        if gap is not None and type(turn.content) is Message:
            place = {"queue": task.queue, "key": turn.content.recipient}
            taken = turn.at + spaced(micros(gap))
            free = turn.at if by is None else taken + by
            await self._store.write([Step("pace_move", {**place, "taken": taken, "free": free})])

    async def run(self, task: Task, content: Any) -> Outcome:
        """One attempt; for `ask`, an attempt in doubt is looked up before anything is sent again."""
        has_turn = type(content) is Turn
        if has_turn:
            content = content.content
        if type(content) is not Message:
            return content  # type: ignore[no-any-return]  # Skip or Defer
        message = content
        if (waits := self._destinations.wait(message)) is not None:
            return waits
        channel = self._channels[task.queue]
        traits = channel.traits
        if task.unknown and traits.on_unknown is OnUnknown.ASK:
            found = await channel.lookup(message)
            if isinstance(found, Done | Unknown):
                return found
        if traits.per_recipient is not None and not has_turn and (early := await self._early(task, message)):
            return early
        outcome = await channel.send(message)
        self._destinations.learn(message, outcome)
        return outcome if message.retry_in is None else _retried_in(outcome, message.retry_in)

    async def outgoing(self, task: Task, content: Any) -> Message | Outcome:
        """What a transport is to send; a recipient's next start is reserved here, where the database is."""
        has_turn = type(content) is Turn
        message = content.content if has_turn else content
        if type(message) is not Message:
            return message  # type: ignore[no-any-return]  # Skip or Defer
        if (waits := self._destinations.wait(message)) is not None:
            return waits
        early = None if has_turn else await self._early(task, message)
        return early or message

    def incoming(self, task: Task, content: Any, outcome: Outcome) -> Outcome:
        """What a transport says came of it, with the sender's own wait."""
        message = content.content if type(content) is Turn else content
        if type(message) is not Message:
            return outcome
        self._destinations.learn(message, outcome)
        return outcome if message.retry_in is None else _retried_in(outcome, message.retry_in)

    async def _early(self, task: Task, message: Message) -> Defer | None:
        """Reserve this recipient's next start, or say when it is."""
        place = {"queue": task.queue, "key": message.recipient}
        gap = self._channels[task.queue].traits.per_recipient
        if (
            gap is None
            or (await self._store.write([Step("pace_take", {**place, "gap": spaced(micros(gap))})]))[0]
        ):
            return None
        rows = await self._store.read("pace_find", **place)
        until = rows[0]["next_at"] if rows else 0
        return Defer(until, _BUSY)


def _lines(tasks: Sequence[Task], contents: Mapping[TaskId, Any]) -> Mapping[str, Sequence[tuple[Task, str]]]:
    """By channel: the messages that are to be sent, each with its recipient."""
    lines: dict[str, list[tuple[Task, str]]] = {}
    for task in tasks:
        if type(message := contents[task.id]) is Message:
            lines.setdefault(task.queue, []).append((task, message.recipient))
    return lines


def _retried_in(outcome: Outcome, length: int) -> Outcome:
    """The sender's own wait between two tries, unless the other side or its limits say otherwise."""
    if not isinstance(outcome, Retry) or outcome.category is Category.THROTTLING:
        return outcome
    if outcome.after is not None or outcome.whole_channel:
        return outcome
    return replace(outcome, after=timedelta(microseconds=length))
