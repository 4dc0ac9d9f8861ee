"""The publisher: packs claimed tasks into batches and publishes them, once per claim.

Contents are prepared and rate-limit slots awaited first. A task that cannot be published ends here.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from ..kernel.handler import RemoteHandler
from ..kernel.heartbeats import Node
from ..kernel.rate_limit_slots import RateLimitWaiter
from ..model.errors import TemporaryError
from ..model.message import Message
from ..model.outcome import Defer, Outcome, raised
from ..model.task import OnUnknown, Task
from .context import DispatchContext
from .in_flight_tasks import InFlightTask, split_into_batches
from .rabbitmq import BATCH_EXCHANGE, BrokerDown, PublishRefused, PublishUnconfirmed
from .wire_format import BATCH_TYPE, MAX_BATCH_SIZE, DispatchBatch, DispatchItem, encode_batch


class TaskPublisher:
    """Publishes tasks of one node. `end` gets outcomes of tasks that end here; `spawn` runs a coroutine."""

    def __init__(
        self,
        context: DispatchContext,
        node: Node,
        *,
        end: Callable[[InFlightTask, Outcome], None],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._context = context
        self._node = node
        self._end = end
        self._spawn = spawn
        self._slot_waiter = RateLimitWaiter(context.store, context.clock, context.handlers)

    async def publish_tasks(self, entries: list[InFlightTask]) -> None:
        """Publish all of these tasks, each as soon as it may start."""
        ready: list[tuple[InFlightTask, Message]] = []
        for entry in entries:
            if entry.task.start_at:
                self._spawn(self._publish_in_slot(entry))
            elif (content := await self._content(entry)) is not None:
                ready.append((entry, content))
        self._publish_all(ready)

    async def _publish_in_slot(self, entry: InFlightTask) -> None:
        """Wait for the task's rate-limit slot, then publish it alone."""
        outcome = await self._slot_waiter.wait(entry.task, entry.lane, self._node.id, entry.content)
        if outcome is not None:
            self._end(entry, outcome)
        elif (content := await self._content(entry)) is not None:
            self._publish_all([(entry, content)])

    async def _content(self, entry: InFlightTask) -> Message | None:
        """Return the message to send; None if the task has ended here."""
        if type(entry.content) is Message and not entry.lane.keyed:
            return entry.content
        handler = self._context.handlers[entry.task.kind]
        try:
            if not isinstance(handler, RemoteHandler):
                raise TypeError(f"{entry.task.kind!r} cannot run in a transport")
            prepared = await handler.outgoing(entry.task, entry.content)
        except TemporaryError as error:
            prepared = Defer(entry.claimed_at, f"the database did not respond: {error.problem}")
        except Exception as error:  # any exception of a handler is an outcome of its task
            prepared = raised(error)
        if isinstance(prepared, Message):
            return prepared
        self._end(entry, prepared)
        return None

    def _publish_all(self, ready: list[tuple[InFlightTask, Message]]) -> None:
        for channel, pairs in split_into_batches(ready, MAX_BATCH_SIZE):
            self._spawn(self._publish(channel, pairs))

    async def _publish(self, channel: str, pairs: list[tuple[InFlightTask, Message]]) -> None:
        entries = [entry for entry, _ in pairs]
        if not self._node.is_trusted:
            self._end_all(entries, "this node could not confirm its claim")
            return
        body = encode_batch(self._batch(channel, pairs))
        to = str(self._node.id)
        try:
            await self._context.broker.publish(
                BATCH_EXCHANGE, channel, body, kind=BATCH_TYPE, reply_to=to, expires=self._context.terms.ttl
            )
        except (BrokerDown, PublishRefused) as error:
            self._end_all(entries, str(error))
        except PublishUnconfirmed:
            pass  # it counts as published: a report arrives, or its timeouts pass

    def _batch(self, channel: str, pairs: list[tuple[InFlightTask, Message]]) -> DispatchBatch:
        lane = pairs[0][0].lane
        asks = lane.on_unknown is OnUnknown.ASK
        return DispatchBatch(
            channel,
            lane.on_unknown is not OnUnknown.RESEND,
            round(self._context.terms.within * 1000),
            round(lane.deadline.total_seconds() * 1000),
            [self._item(channel, entry.task, message, asks=asks) for entry, message in pairs],
        )

    def _item(self, channel: str, task: Task, message: Message, *, asks: bool) -> DispatchItem:
        token = self._context.tokens.of(channel, task.id, task.claim_no)
        return DispatchItem(task.id, task.claim_no, token, message, ask=task.unknown and asks)

    def _end_all(self, entries: list[InFlightTask], reason: str) -> None:
        for entry in entries:
            self._end(entry, Defer(entry.task.due_at, reason))
