"""The task handler for messages: loads them in batches and sends each on its channel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any

import orjson

from ..kernel.breaker import BreakerRule
from ..kernel.handler import ReservedSlot
from ..model.message import Message
from ..model.outcome import Defer, Done, Outcome, Reject, Retry, Skip, Unknown
from ..model.task import Category, OnUnknown, Task, TaskId, TaskState, Transition
from ..model.time import micros
from ..store.port import Step, Store
from ..store.rate_limits import slot_interval
from .channels.base import Channel
from .contacts.suppressions import opt_out_steps
from .destination_breakers import DestinationBreakers
from .events import event_types
from .events.subscription_cache import SubscriptionCache
from .receipts.base import CallbackReader
from .receipts.receipt_recorder import expect_receipts
from .recipient_rate_limits import RecipientSlots
from .rollout.shadow import content_digest
from .send_checks import SHADOWED, check_send

_ENDS: Mapping[TaskState, tuple[str, ...]] = {  # events of a transition out of `processing`
    TaskState.DONE: ("message.sent",),
    TaskState.FAILED: ("message.failed", "message.unknown"),
    TaskState.CANCELLED: ("message.cancelled", "message.skipped"),
    TaskState.PENDING: ("message.cancelled",),  # if cancellation was requested meanwhile
}

_BUSY = "this recipient gets one message at a time on this channel"
_CLEAR = (None, None, None, None)  # nothing for `check_send` to evaluate


class Delivery:
    """Handles tasks of kind `message`."""

    def __init__(
        self,
        store: Store,
        channels: Mapping[str, Channel],
        *,
        now: Callable[[], int],
        listeners: SubscriptionCache | None = None,
        readers: Mapping[str, CallbackReader] = MappingProxyType({}),
        destinations: DestinationBreakers | None = None,
    ) -> None:
        self._store = store
        self._channels = channels
        self._now = now
        self._listeners = listeners
        self._lines = RecipientSlots()
        self._saw_opt_out = False  # a transition to come may contain an opt-out
        self._destinations = destinations or DestinationBreakers(store, {}, rule=BreakerRule(), now=now)
        self._readers = readers  # for channels whose providers send receipts

    async def load(self, tasks: Sequence[Task]) -> Mapping[TaskId, Message | Skip | Defer]:
        """Load the messages of these tasks; Skip or Defer for those that must not be sent now."""
        attempts = {task.id: task.attempts for task in tasks}
        rows = await self._store.load("message_load", list(attempts))
        loaded = {
            row[0]: (row[7:11] != _CLEAR and check_send(row[4], *row[7:11], now=self._now))
            or Message(row[1], row[2], row[3], row[4], orjson.loads(row[5]), row[6], attempts[row[0]], *row[11:13])
            for row in rows
        }
        if shadowed := [row for row in rows if loaded[row[0]] is SHADOWED]:
            await self._record_shadowed(shadowed)
        return loaded

    async def _record_shadowed(self, rows: Sequence[Sequence[Any]]) -> None:
        """Record what shadow mode would have sent, before the task ends as skipped. Idempotent."""
        noted = [{"task": row[0], "digest": content_digest(orjson.loads(row[5]))} for row in rows]
        await self._store.write([Step("shadow_ours", {"rows": orjson.dumps(noted).decode()})])

    @property
    def listens(self) -> bool:
        """Whether transitions have effects: events for subscribers, receipts to expect, opt-outs."""
        return bool(self._readers) or self._saw_opt_out or (self._listeners is not None and self._listeners.has_any)

    def effects(self, moves: Sequence[tuple[Task, Transition]]) -> Sequence[Step]:
        """Steps for events with subscribers, for provider ids of expected receipts, and for opt-outs."""
        return [*self._events(moves), *expect_receipts(moves, self._readers), *opt_out_steps(moves)]

    def _events(self, moves: Sequence[tuple[Task, Transition]]) -> Sequence[Step]:
        if self._listeners is None or not self._listeners.has_any:
            return ()
        events = [
            {"id": move.id, "claim_no": move.claim_no, "state": move.to, "detail": move.detail}
            for task, move in moves
            if task.queue != event_types.EVENTS_CHANNEL and self._listeners.has_subscriber(task.tenant, _ENDS[move.to])
        ]
        return [Step("outbox_moves", {"moves": orjson.dumps(events).decode()})] if events else ()

    async def take_slots(self, tasks: Sequence[Task], contents: Mapping[TaskId, Any]) -> Mapping[TaskId, Any]:
        """Reserve a start for each message whose recipient is free; defer the others."""
        turns: dict[TaskId, ReservedSlot | Defer] = {}
        for queue, line in _lines(tasks, contents).items():
            traits = self._channels[queue].traits
            if traits.per_recipient is None:
                continue
            gap = micros(traits.per_recipient)
            taken = await self._store.take_slots(queue, [(task.id, key) for task, key in line], gap)
            turns |= {id_: ReservedSlot(at, contents[id_]) for id_, at in taken.starts.items()}
            for task, key in line:
                if task.id in taken.waits:
                    place = (queue, key, task.priority)
                    until = self._lines.place(place, taken.waits[task.id], slot_interval(gap), taken.now)
                    turns[task.id] = Defer(until, _BUSY)
        return turns

    async def move_slot(self, task: Task, turn: ReservedSlot, by: int | None) -> None:
        """Move the recipient's next start by `by`; None releases the slot of a message that was not sent."""
        gap = self._channels[task.queue].traits.per_recipient
        if gap is not None and type(turn.content) is Message:
            place = {"queue": task.queue, "key": turn.content.recipient}
            taken = turn.at + slot_interval(micros(gap))
            free = turn.at if by is None else taken + by
            await self._store.write([Step("recipient_rate_limit_move", {**place, "taken": taken, "free": free})])

    async def run(self, task: Task, content: Any) -> Outcome:
        """Make one attempt. With `on_unknown` ask, look up an uncertain attempt before sending again."""
        has_turn = type(content) is ReservedSlot
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
        return self._learned(message, await channel.send(message))

    async def outgoing(self, task: Task, content: Any) -> Message | Outcome:
        """What a transport is to send. Reserves the recipient's slot, because transports have no database."""
        has_turn = type(content) is ReservedSlot
        message = content.content if has_turn else content
        if type(message) is not Message:
            return message  # type: ignore[no-any-return]  # Skip or Defer
        if (waits := self._destinations.wait(message)) is not None:
            return waits
        early = None if has_turn else await self._early(task, message)
        return early or message

    def log_ids(self, content: Any) -> Mapping[str, str]:
        """Return the message's id."""
        message = content.content if type(content) is ReservedSlot else content
        return {"message": message.id} if type(message) is Message else {}

    def incoming(self, task: Task, content: Any, outcome: Outcome) -> Outcome:
        """Apply a transport's outcome; the sender's own retry delay wins."""
        message = content.content if type(content) is ReservedSlot else content
        return outcome if type(message) is not Message else self._learned(message, outcome)

    def _learned(self, message: Message, outcome: Outcome) -> Outcome:
        self._destinations.learn(message, outcome)
        if type(outcome) is Reject and outcome.opted_out:
            suppress = self._channels[message.channel].traits.suppress_opt_outs
            self._saw_opt_out |= suppress
            return replace(outcome, opted_out=suppress)
        return outcome if message.retry_in is None else _retried_in(outcome, message.retry_in)

    async def _early(self, task: Task, message: Message) -> Defer | None:
        """Reserve the recipient's next start; Defer until then if it is taken."""
        place = {"queue": task.queue, "key": message.recipient}
        gap = self._channels[task.queue].traits.per_recipient
        if (
            gap is None
            or (
                await self._store.write(
                    [Step("recipient_rate_limit_take", {**place, "gap": slot_interval(micros(gap))})]
                )
            )[0]
        ):
            return None
        rows = await self._store.read("recipient_rate_limit_find", **place)
        until = rows[0]["next_at"] if rows else 0
        return Defer(until, _BUSY)


def _lines(tasks: Sequence[Task], contents: Mapping[TaskId, Any]) -> Mapping[str, Sequence[tuple[Task, str]]]:
    """The messages to send by channel, each with its recipient."""
    lines: dict[str, list[tuple[Task, str]]] = {}
    for task in tasks:
        if type(message := contents[task.id]) is Message:
            lines.setdefault(task.queue, []).append((task, message.recipient))
    return lines


def _retried_in(outcome: Outcome, length: int) -> Outcome:
    """Apply the sender's retry delay, unless the provider or a rate limit set one."""
    if not isinstance(outcome, Retry) or outcome.category is Category.THROTTLING:
        return outcome
    if outcome.after is not None or outcome.whole_channel:
        return outcome
    return replace(outcome, after=timedelta(microseconds=length))
