"""What was read from the broker, and how it is acknowledged."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aio_pika.abc import AbstractIncomingMessage


class BrokerMessage:
    """One message that was read; `ack` when what it says is durable."""

    __slots__ = ("_message", "body", "channel", "headers", "kind", "redelivered", "reply_to")

    def __init__(self, message: AbstractIncomingMessage, channel: object) -> None:
        self._message = message
        self.channel = channel  # where it was read
        self.body = message.body
        self.kind = message.type or ""
        self.reply_to = message.reply_to or ""
        self.redelivered = bool(message.redelivered)
        self.headers: Mapping[str, Any] = message.headers

    async def ack(self, *, and_before: bool = False) -> None:
        """It need not come again. On a connection that is gone this changes nothing: it comes again."""
        with contextlib.suppress(Exception):  # the library raises many things for a channel that is closed
            await self._message.ack(multiple=and_before)

    async def refuse(self) -> None:
        """It cannot be read: to the dead letters."""
        with contextlib.suppress(Exception):
            await self._message.reject(requeue=False)


async def ack_all(messages: Sequence[BrokerMessage]) -> None:
    """None of these need come again, nor anything that was read before them."""
    for message, after in pairwise([*messages, None]):
        if message is not None and (after is None or after.channel is not message.channel):
            await message.ack(and_before=True)
