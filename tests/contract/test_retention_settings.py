"""Settings that decide how long things are kept, how broadcasts are cut into batches, and when health is degraded."""

from __future__ import annotations

from datetime import timedelta

from tidings.kernel.clock import ManualClock
from tidings.model.broadcast import BroadcastState
from tidings.model.message import Message
from tidings.model.outcome import Outcome, Reject
from tidings.model.task import Category
from tidings.outbound.broadcasts.feeder import BroadcastFeeder
from tidings.outbound.dead_letters import DeadLetterExpirer
from tidings.outbound.health import HealthLimits, HealthStatus, evaluate_health
from tidings.outbound.scheduler_health import check_scheduler_health
from tidings.store.port import Store

from .broadcast_harness import BroadcastHarness, people


def refuse(_: Message) -> Outcome:
    return Reject(Category.PERMANENT, "no such person")


async def test_dead_letters_expire_at_the_age_of_the_setting(store: Store, clock: ManualClock) -> None:
    """A6: failed to expired by `dead_letter_retention`, with a line in the history; younger ones stay."""
    house = BroadcastHarness(store, clock, script=refuse)
    await house.open()
    old = await house.cast("ada")
    await house.run()
    clock.advance(hours=8 * 24)
    young = await house.cast("bob")
    await house.run()
    await DeadLetterExpirer(store, clock, timedelta(days=7)).step()

    async def state(id_: str) -> str:
        return str((await house.roll(id_))[0]["state"])

    assert (await state(old), await state(young)) == ("expired", "failed")
    history = (await house.messages.show((await house.roll(old))[0]["id"]))["history"]
    assert history[-1]["detail"] == "a dead letter for 7 d (dead_letter_retention)"


async def test_a_broadcast_is_cut_into_batches_of_the_settings(store: Store, clock: ManualClock) -> None:
    """B12: at most `broadcast_batch_size` in a transaction and `broadcast_batches` of them in progress."""
    house = BroadcastHarness(store, clock)
    await house.open()
    id_ = await house.cast(*people(100))
    feeder = BroadcastFeeder(store, clock, house.broadcast_creator, grace=10**12, bulk=10, window=30)
    open_ = []
    for _ in range(5):
        await feeder.step()
        clock.advance(0.06)
        row = (await store.read("broadcast_find", id=id_, tenant="default"))[0]
        assert row["state"] == BroadcastState.RUNNING
        open_.append(row["taken"])

    assert open_ == [10, 20, 30, 30, 30]


async def test_health_uses_the_limits_of_the_settings(store: Store, clock: ManualClock) -> None:
    """A10, B10: rates, the depth of the queue and the age of the last poll."""
    rows = [{"outcome": "done", "n": 85, "ms": 1}, {"outcome": "failed:permanent", "n": 15, "ms": 1}]

    def status(limits: HealthLimits) -> HealthStatus:
        return evaluate_health(rows, alive=1, drift=timedelta(0), limits=limits).status

    assert status(HealthLimits()) is HealthStatus.DEGRADED
    assert status(HealthLimits(0.8, 0.2)) is HealthStatus.UP
    assert status(HealthLimits(0.8, 0.1)) is HealthStatus.DEGRADED

    house = BroadcastHarness(store, clock)
    await house.open()
    for name in people(4):
        await house.cast(name)
    await house.pump.step()
    assert (
        "over 3 messages are due"
        in (await check_scheduler_health(store, clock, HealthLimits(max_queue_depth=3))).reasons
    )
    assert "over" not in " ".join((await check_scheduler_health(store, clock, HealthLimits(max_queue_depth=4))).reasons)
