"""Giving away: from what was fed to the hands to what is with the broker.

Contents are made up, instants of a rate are waited for, and what belongs to one channel is packed and
published, once for each claim. Whatever cannot be given away ends here.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from ..kernel.clock import Clock
from ..kernel.handler import Handler, RemoteHandler
from ..kernel.heartbeats import Node
from ..kernel.rate_limit_slots import RateLimitWaiter
from ..model.errors import TemporaryError, error_text
from ..model.message import Message
from ..model.outcome import Defer, Outcome, Retry
from ..model.task import Category, OnUnknown, Task
from ..store.port import Store
from .claim_tokens import ClaimTokens
from .in_flight_tasks import DispatchTimeouts, InFlightTask, split_into_batches
from .rabbitmq import BATCH_EXCHANGE, BrokerConnection, BrokerDown, PublishRefused, PublishUnconfirmed
from .wire_format import BATCH_TYPE, MAX_BATCH_SIZE, DispatchBatch, DispatchItem, encode_batch


class TaskPublisher:
    """One node's. `end` is told of what ended here, `spawn` runs something beside."""

    def __init__(
        self,
        link: BrokerConnection,
        store: Store,
        clock: Clock,
        node: Node,
        handlers: Mapping[str, Handler],
        *,
        terms: DispatchTimeouts,
        tokens: ClaimTokens,
        end: Callable[[InFlightTask, Outcome], None],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._link = link
        self._node = node
        self._handlers = handlers
        self._terms = terms
        self._tokens = tokens
        self._end = end
        self._spawn = spawn
        self._turns = RateLimitWaiter(store, clock, handlers)

    async def publish_tasks(self, in_flight_tasks: list[InFlightTask]) -> None:
        """All of these, as soon as each may go."""
        ready: list[tuple[InFlightTask, Message]] = []
        for in_flight_task in in_flight_tasks:
            if in_flight_task.task.start_at:
                self._spawn(self._give_in_turn(in_flight_task))
            elif (content := await self._content(in_flight_task)) is not None:
                ready.append((in_flight_task, content))
        self._publish_all(ready)

    async def _give_in_turn(self, in_flight_task: InFlightTask) -> None:
        """Wait for the instant that a rate reserved for it; then it goes alone."""
        outcome = await self._turns.wait(
            in_flight_task.task, in_flight_task.lane, self._node.id, in_flight_task.content
        )
        if outcome is not None:
            self._end(in_flight_task, outcome)
        elif (content := await self._content(in_flight_task)) is not None:
            self._publish_all([(in_flight_task, content)])

    async def _content(self, in_flight_task: InFlightTask) -> Message | None:
        """What is to be sent; None where it has ended here."""
        if type(in_flight_task.content) is Message and not in_flight_task.lane.keyed:
            return in_flight_task.content
        handler = self._handlers[in_flight_task.task.kind]
        try:
            if not isinstance(handler, RemoteHandler):
                raise TypeError(f"{in_flight_task.task.kind!r} cannot be done elsewhere")
            made = await handler.outgoing(in_flight_task.task, in_flight_task.content)
        except TemporaryError as error:
            made = Defer(in_flight_task.claimed_at, f"the database did not answer: {error.problem}")
        except Exception as error:  # a handler may do anything; its task must not vanish with it
            made = Retry(Category.SYSTEM, error_text(error))
        if isinstance(made, Message):
            return made
        self._end(in_flight_task, made)
        return None

    def _publish_all(self, ready: list[tuple[InFlightTask, Message]]) -> None:
        for channel, pairs in split_into_batches(ready, MAX_BATCH_SIZE):
            self._spawn(self._publish(channel, pairs))

    async def _publish(self, channel: str, pairs: list[tuple[InFlightTask, Message]]) -> None:
        in_flight_tasks = [in_flight_task for in_flight_task, _ in pairs]
        if not self._node.is_trusted:
            self._end_all(in_flight_tasks, "this node could not be sure of its claim any more")
            return
        body = encode_batch(self._parcel(channel, pairs))
        to = str(self._node.id)
        try:
            await self._link.publish(
                BATCH_EXCHANGE, channel, body, kind=BATCH_TYPE, reply_to=to, expires=self._terms.ttl
            )
        except (BrokerDown, PublishRefused) as error:
            self._end_all(in_flight_tasks, str(error))
        except PublishUnconfirmed:
            pass  # it counts as published: a report comes, or every bound passes

    def _parcel(self, channel: str, pairs: list[tuple[InFlightTask, Message]]) -> DispatchBatch:
        lane = pairs[0][0].lane
        asks = lane.on_unknown is OnUnknown.ASK
        return DispatchBatch(
            channel,
            lane.on_unknown is not OnUnknown.RESEND,
            round(self._terms.within * 1000),
            round(lane.deadline.total_seconds() * 1000),
            [
                self._item(channel, in_flight_task.task, message, asks=asks)
                for in_flight_task, message in pairs
            ],
        )

    def _item(self, channel: str, task: Task, message: Message, *, asks: bool) -> DispatchItem:
        token = self._tokens.of(channel, task.id, task.claim_no)
        return DispatchItem(task.id, task.claim_no, token, message, ask=task.unknown and asks)

    def _end_all(self, in_flight_tasks: list[InFlightTask], why: str) -> None:
        for in_flight_task in in_flight_tasks:
            self._end(in_flight_task, Defer(in_flight_task.task.due_at, why))
