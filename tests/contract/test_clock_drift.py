"""A machine whose clock differs from the database's says so in its log."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tidings.kernel.clock import ManualClock
from tidings.observability.events import ClockDrift
from tidings.store.port import Store

from .kernel_harness import KernelHarness


@pytest.mark.parametrize(
    ("seconds", "logged"), [(0.9, []), (-2.0, [ClockDrift(-2.0, False)]), (11.0, [ClockDrift(11.0, True)])]
)
async def test_a_drift_over_one_second_is_logged_with_each_heartbeat(
    store: Store, clock: ManualClock, seconds: float, logged: list[ClockDrift]
) -> None:
    """B13: over 10 s the line says that it fails the health check."""
    world = await KernelHarness(store, clock).open()
    clock.set_drift(timedelta(seconds=seconds))

    await world.worker._heartbeat_once()

    assert world.told(ClockDrift) == logged
