"""Ready-made retry policies in a running engine: each wait to the second, then a dead letter."""

from __future__ import annotations

import pytest

from tidings.kernel.clock import ManualClock
from tidings.kernel.retry import POLICIES
from tidings.model.outcome import Reject, Retry
from tidings.model.task import Category
from tidings.model.time import DAY
from tidings.store.port import Store

from .kernel_harness import KernelHarness

BUSY = Retry(Category.TEMPORARY, "busy")


@pytest.mark.parametrize(("policy", "minutes"), [("quick", (0.5, 2, 5)), ("stepped", (5, 15, 60, 300, 900))])
async def test_a_channel_waits_as_its_policy_says_and_then_gives_up(
    store: Store, clock: ManualClock, policy: str, minutes: tuple[float, ...]
) -> None:
    """B6, E3: one attempt more than there are waits."""
    world = await KernelHarness(store, clock, lambda _message: BUSY, policy=POLICIES[policy]).open()
    id_ = await world.send(expires_at=clock.now() + 30 * DAY)
    assert (await world.step()).claimed == 1
    for wait in minutes:
        assert (await world.step(seconds=wait * 60 - 1)).claimed == 0
        assert (await world.step(seconds=1)).claimed == 1

    shown = await world.show(id_)
    assert (shown["state"], shown["attempts"], shown["error"]) == ("failed", len(minutes) + 1, "busy")
    assert (await world.step(seconds=30 * 86_400)).claimed == 0


async def test_a_number_that_is_not_registered_is_never_retried(store: Store, clock: ManualClock) -> None:
    """E3: a permanent error is a dead letter after the first attempt."""
    gone = Reject(Category.PERMANENT, "not registered")
    world = await KernelHarness(store, clock, lambda _message: gone, policy=POLICIES["quick"]).open()
    id_ = await world.send()
    await world.step()

    assert (await world.step(seconds=3600)).claimed == 0
    assert ((shown := await world.show(id_))["state"], shown["attempts"]) == ("failed", 1)
