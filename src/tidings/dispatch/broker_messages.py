"""Received broker messages and their acknowledgement."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aio_pika.abc import AbstractIncomingMessage


class BrokerMessage:
    """A received message; `ack` it when its content is durable."""

    __slots__ = ("_message", "body", "channel", "headers", "kind", "redelivered", "reply_to")

    def __init__(self, message: AbstractIncomingMessage, channel: object) -> None:
        self._message = message
        self.channel = channel  # on which it was received
        self.body = message.body
        self.kind = message.type or ""
        self.reply_to = message.reply_to or ""
        self.redelivered = bool(message.redelivered)
        self.headers: Mapping[str, Any] = message.headers

    async def ack(self, *, and_before: bool = False) -> None:
        """Acknowledge. After a lost connection this has no effect: the message is redelivered."""
        with contextlib.suppress(Exception):  # the library raises various errors for a closed channel
            await self._message.ack(multiple=and_before)

    async def refuse(self) -> None:
        """Reject: the broker dead-letters the message."""
        with contextlib.suppress(Exception):
            await self._message.reject(requeue=False)


def one_by_one(
    take: Callable[[BrokerMessage], Awaitable[None]],
) -> Callable[[Sequence[BrokerMessage]], Awaitable[None]]:
    """Return a consumer of batches that takes one message after another."""

    async def take_all(batch: Sequence[BrokerMessage]) -> None:
        for message in batch:
            await take(message)

    return take_all


async def ack_all(messages: Sequence[BrokerMessage]) -> None:
    """Acknowledge these messages and all that were received before them."""
    for message, after in pairwise([*messages, None]):
        if message is not None and (after is None or after.channel is not message.channel):
            await message.ack(and_before=True)
