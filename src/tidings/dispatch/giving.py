"""Giving away: from what was fed to the hands to what is with the broker.

Contents are made up, instants of a rate are waited for, and what belongs to one channel is packed and
published, once for each claim. Whatever cannot be given away ends here.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from ..kernel.clock import Clock
from ..kernel.handler import Handler, Remote
from ..kernel.nodes import Node
from ..kernel.turns import Turns
from ..model.errors import Temporary, told
from ..model.message import Message
from ..model.outcome import Defer, Outcome, Retry
from ..model.task import Category, OnUnknown, Task
from ..store.port import Store
from .errands import Errand, Terms, parcels
from .link import PARCELS, Doubtful, Down, Link, Refused
from .tokens import Tokens
from .wire import LARGEST, PARCEL, Item, Parcel, pack


class Giving:
    """One node's. `end` is told of what ended here, `spawn` runs something beside."""

    def __init__(
        self,
        link: Link,
        store: Store,
        clock: Clock,
        node: Node,
        handlers: Mapping[str, Handler],
        *,
        terms: Terms,
        tokens: Tokens,
        end: Callable[[Errand, Outcome], None],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._link = link
        self._node = node
        self._handlers = handlers
        self._terms = terms
        self._tokens = tokens
        self._end = end
        self._spawn = spawn
        self._turns = Turns(store, clock, handlers)

    async def give_away(self, errands: list[Errand]) -> None:
        """All of these, as soon as each may go."""
        ready: list[tuple[Errand, Message]] = []
        for errand in errands:
            if errand.task.start_at:
                self._spawn(self._give_in_turn(errand))
            elif (content := await self._content(errand)) is not None:
                ready.append((errand, content))
        self._publish_all(ready)

    async def _give_in_turn(self, errand: Errand) -> None:
        """Wait for the instant that a rate reserved for it; then it goes alone."""
        outcome = await self._turns.wait(errand.task, errand.lane, self._node.id, errand.content)
        if outcome is not None:
            self._end(errand, outcome)
        elif (content := await self._content(errand)) is not None:
            self._publish_all([(errand, content)])

    async def _content(self, errand: Errand) -> Message | None:
        """What is to be sent; None where it has ended here."""
        if type(errand.content) is Message and not errand.lane.keyed:
            return errand.content
        handler = self._handlers[errand.task.kind]
        try:
            if not isinstance(handler, Remote):
                raise TypeError(f"{errand.task.kind!r} cannot be done elsewhere")
            made = await handler.outgoing(errand.task, errand.content)
        except Temporary as error:
            made = Defer(errand.claimed_at, f"the database did not answer: {error.problem}")
        except Exception as error:  # a handler may do anything; its task must not vanish with it
            made = Retry(Category.SYSTEM, told(error))
        if isinstance(made, Message):
            return made
        self._end(errand, made)
        return None

    def _publish_all(self, ready: list[tuple[Errand, Message]]) -> None:
        for channel, pairs in parcels(ready, LARGEST):
            self._spawn(self._publish(channel, pairs))

    async def _publish(self, channel: str, pairs: list[tuple[Errand, Message]]) -> None:
        errands = [errand for errand, _ in pairs]
        if not self._node.is_trusted:
            self._end_all(errands, "this node could not be sure of its claim any more")
            return
        body = pack(self._parcel(channel, pairs))
        to = str(self._node.id)
        try:
            await self._link.publish(
                PARCELS, channel, body, kind=PARCEL, reply_to=to, expires=self._terms.ttl
            )
        except (Down, Refused) as error:
            self._end_all(errands, str(error))
        except Doubtful:
            pass  # it counts as published: a report comes, or every bound passes

    def _parcel(self, channel: str, pairs: list[tuple[Errand, Message]]) -> Parcel:
        lane = pairs[0][0].lane
        asks = lane.on_unknown is OnUnknown.ASK
        return Parcel(
            channel,
            lane.on_unknown is not OnUnknown.RESEND,
            round(self._terms.within * 1000),
            round(lane.deadline.total_seconds() * 1000),
            [self._item(channel, errand.task, message, asks=asks) for errand, message in pairs],
        )

    def _item(self, channel: str, task: Task, message: Message, *, asks: bool) -> Item:
        token = self._tokens.of(channel, task.id, task.claim_no)
        return Item(task.id, task.claim_no, token, message, ask=task.unknown and asks)

    def _end_all(self, errands: list[Errand], why: str) -> None:
        for errand in errands:
            self._end(errand, Defer(errand.task.due_at, why))
