"""An empty broker for each test: what earlier ones declared is deleted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import aio_pika

from tidings.dispatch.rabbitmq import (
    BATCH_EXCHANGE,
    DEAD_LETTER_EXCHANGE,
    LATE_EXCHANGE,
    OUTCOME_EXCHANGE,
    batch_queue,
    outcome_queue,
)


async def clean(url: str, channel: str, nodes: int = 9) -> None:
    """Delete every queue and exchange that a fleet of so many nodes may have left."""
    connection = await aio_pika.connect(url)
    for queue in (DEAD_LETTER_EXCHANGE, LATE_EXCHANGE, batch_queue(channel), *map(outcome_queue, range(1, nodes))):
        async with _scratch(connection) as one:
            await one.queue_delete(queue, if_unused=False, if_empty=False)
    for exchange in (BATCH_EXCHANGE, OUTCOME_EXCHANGE, LATE_EXCHANGE, DEAD_LETTER_EXCHANGE):
        async with _scratch(connection) as one:
            await one.exchange_delete(exchange)
    await connection.close()


@asynccontextmanager
async def _scratch(connection: Any) -> AsyncIterator[Any]:
    """A channel that may be closed by what is asked of it."""
    channel = await connection.channel()
    with suppress(aio_pika.exceptions.AMQPError):
        yield channel
    if not channel.is_closed:
        await channel.close()
