"""What the broker does with what is published: nowhere to go, or a channel that it closes (F43, F47)."""

from __future__ import annotations

import asyncio

import pytest

from tidings.dispatch.rabbitmq import BATCH_EXCHANGE, BrokerConnection, BrokerDown, PublishRefused, PublishUnconfirmed
from tidings.kernel.clock import SystemClock

from ..time_limits import within
from .conftest import CHANNEL, SOON

pytestmark = pytest.mark.xdist_group("rabbitmq")


async def test_an_unroutable_message_was_not_published(broker: str) -> None:
    """The broker returns it, and that is said as a certain no; the link goes on (F43)."""
    link = BrokerConnection((broker,), SystemClock(), emit=lambda _: None, channels=(CHANNEL,), name="test")
    await link.start()
    async with within(SOON):
        with pytest.raises(PublishRefused):
            await link.publish(BATCH_EXCHANGE, "nobody", b"x", kind="test")
        await link.publish(BATCH_EXCHANGE, CHANNEL, b"x", kind="test")
    await link.stop()


async def test_missing_confirms_of_a_closed_channel_are_unconfirmed_and_it_reconnects(broker: str) -> None:
    """A protocol error closes it with twenty in flight: each is confirmed, or in doubt, or certainly not
    published, never simply gone; and it can be published again (F47)."""
    came = asyncio.Event()
    link = BrokerConnection(
        (broker,), SystemClock(), emit=lambda _: None, channels=(CHANNEL,), name="test", came=came.set
    )
    await link.start()
    came.clear()
    channel = link._publishing
    assert channel is not None
    async with within(SOON):
        flying = [
            asyncio.create_task(link.publish(BATCH_EXCHANGE, CHANNEL, b"%d" % number, kind="test"))
            for number in range(20)
        ]
        await asyncio.gather(channel.get_exchange("there is none", ensure=True), return_exceptions=True)
        ends = await asyncio.gather(*flying, return_exceptions=True)
        await came.wait()
        await link.publish(BATCH_EXCHANGE, CHANNEL, b"again", kind="test")
    await link.stop()

    assert all(end is None or isinstance(end, PublishUnconfirmed | BrokerDown) for end in ends)
