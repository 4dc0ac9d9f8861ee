"""A broker that blocks its publishers, because its memory or its disk is nearly full (F46)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from tidings.testing import Rabbit

from .conftest import Fleet, accept, states

pytestmark = pytest.mark.xdist_group("rabbitmq")

_BOUNDS = 6.0  # seconds, more than every bound of what was claimed


@asynccontextmanager
async def blocked(rabbit: Rabbit) -> AsyncIterator[None]:
    """Its memory alarm rings: whoever publishes is not read any more."""
    await asyncio.to_thread(rabbit.control, "set_vm_memory_high_watermark", "0.00000001")
    try:
        yield
    finally:
        await asyncio.to_thread(rabbit.control, "set_vm_memory_high_watermark", "0.6")


async def test_a_broker_that_blocks_its_publishers_holds_up_what_it_has_and_nothing_is_lost(
    fleet: Fleet, rabbit: Rabbit
) -> None:
    """Messages are accepted as ever; what was claimed waits beyond its bounds and is not called lost; when
    the broker takes again, everything goes out, and what goes out twice says so (F46)."""
    sender = fleet.sender()
    app = await fleet.dispatcher(broker_wait=timedelta(seconds=1))
    await fleet.transport(sender)
    await fleet.all_are(app, await accept(app, "before"))
    async with blocked(rabbit):
        waiting = await accept(app, *"abcdef")
        await asyncio.sleep(_BOUNDS)
        meanwhile = await states(app, waiting)
        later = await accept(app, "g")

    await fleet.all_are(app, [*waiting, *later])

    assert set(meanwhile) & {"processing", "pending"}, "nobody was held up: this run proves nothing (R7)"
    assert not set(meanwhile) - {"processing", "pending", "sent"}
    copies = Counter(sender.sent)
    assert set(copies) == {"before", *"abcdefg"}
    shown = {to: await app.messages.show(id_) for to, id_ in zip("abcdefg", [*waiting, *later], strict=True)}
    assert all(shown[to]["unknown"] for to, count in copies.items() if count > 1)
