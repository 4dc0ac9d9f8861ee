"""The link to RabbitMQ over broken connections (F40, F41)."""

from __future__ import annotations

import asyncio

import aio_pika
import pytest

from tidings.dispatch import rabbitmq as links
from tidings.dispatch.broker_messages import BrokerMessage, ack_all
from tidings.dispatch.rabbitmq import OUTCOME_EXCHANGE, BrokerConnection, outcome_queue
from tidings.kernel.clock import SystemClock

from ..time_limits import within
from .conftest import CHANNEL, SOON

pytestmark = pytest.mark.xdist_group("rabbitmq")

NODE = 7


async def test_messages_of_two_connections_are_acknowledged_together(
    broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first connection is gone, and that keeps nothing that the second one brought from being over."""
    monkeypatch.setattr(links, "QUEUE_SETTLE_TIME", 0.0)
    link = BrokerConnection((broker,), SystemClock(), emit=lambda _: None, channels=(CHANNEL,), name="test")
    came: asyncio.Queue[BrokerMessage] = asyncio.Queue()

    async def take(batch: list[BrokerMessage]) -> None:
        for incoming in batch:
            came.put_nowait(incoming)

    await link.start()
    await link.read(outcome_queue(NODE), take, prefetch=10, own=True)
    async with within(SOON):
        for number in range(2):
            await link.publish(OUTCOME_EXCHANGE, str(NODE), b"%d" % number, kind="test")
        first = [await came.get(), await came.get()]
        await link._connection.close()  # type: ignore[union-attr]
        second = [await came.get(), await came.get()]

    await ack_all([*first, *second])
    await link.stop()

    assert all(incoming.redelivered for incoming in second)
    assert not await left_in(broker, outcome_queue(NODE))


async def left_in(url: str, queue: str) -> int:
    """How many messages wait in a queue that nobody reads."""
    connection = await aio_pika.connect(url)
    channel = await connection.channel()
    found = await channel.declare_queue(queue, passive=True)
    await connection.close()
    return int(found.declaration_result.message_count or 0)
