"""`overlap`: what a schedule does while its previous occurrence is not finished, on both databases (E6)."""

from __future__ import annotations

import pytest

from tidings.kernel.clock import ManualClock
from tidings.model.errors import Conflict, Invalid
from tidings.model.time import MINUTE
from tidings.store.port import Store

from .kernel_harness import KernelHarness
from .test_schedules import Plans, later


@pytest.fixture
async def plans(store: Store, clock: ManualClock) -> Plans:
    """A scheduler, and messages that nobody sends until the test says so."""
    return Plans(await KernelHarness(store, clock).open())


async def test_by_default_occurrences_overlap(plans: Plans) -> None:
    """The first is still waiting to be sent when the second is created."""
    await plans.add({"every": "10m"})
    await plans.tick(600)
    await plans.tick(600)

    assert len(await plans.messages()) == 2


async def test_an_occurrence_is_skipped_while_the_previous_one_is_not_finished(plans: Plans) -> None:
    """E6: one at a time. The log names the previous one; once it is finished, the next occurrence is created."""
    id_ = await plans.add({"every": "10m"}, overlap="skip")
    times = [later(plans.clock, n * 10 * MINUTE) for n in (1, 2, 3)]
    await plans.tick(600)
    first = (await plans.show(id_))["last_created"]
    await plans.tick(600)
    await plans.world.messages.cancel(first)
    await plans.tick(600)

    assert await plans.log(id_) == list(zip(times, ("created", "skipped", "created"), strict=True))
    lines = (await plans.schedules.occurrences(id_)).items
    assert lines[1]["detail"] == f"the previous occurrence ({first}) is not finished"
    assert len(await plans.messages()) == 2


@pytest.mark.parametrize("catch_up", ["latest", "all"])
async def test_an_occurrence_waits_until_the_previous_one_is_finished(plans: Plans, catch_up: str) -> None:
    """E6: never two at a time, whatever was missed; the occurrence keeps its own instant."""
    id_ = await plans.add({"every": "10m"}, overlap="wait", catch_up=catch_up)
    times = [later(plans.clock, n * 10 * MINUTE) for n in (1, 2, 3)]
    await plans.tick(600)
    first = (await plans.show(id_))["last_created"]
    assert await plans.tick(600) == 1.0
    shown = await plans.show(id_)
    assert (shown["next_at"], shown["waits_for"], shown["state"]) == (times[1], first, "active")
    await plans.tick(900)
    assert [row["id"] for row in await plans.messages()] == [first]

    await plans.world.messages.cancel(first)
    await plans.tick(60)
    second = (await plans.show(id_))["last_created"]
    created = [at for at, outcome in await plans.log(id_) if outcome == "created"]
    assert created == ([times[0], times[2]] if catch_up == "latest" else times[:2])
    assert len(await plans.messages()) == 2
    if catch_up == "all":
        await plans.world.messages.cancel(second)
        await plans.tick(60)
        assert [at for at, outcome in await plans.log(id_) if outcome == "created"] == times


async def test_an_occurrence_waits_at_most_for_its_catch_up_window(plans: Plans) -> None:
    """After that it counts as missed, and the next one waits."""
    id_ = await plans.add({"every": "10m"}, overlap="wait", catch_up_window="5m")
    times = [later(plans.clock, n * 10 * MINUTE) for n in (1, 2, 3)]
    for _ in range(2):
        await plans.tick(600)
    await plans.tick(301)

    assert await plans.log(id_) == [(times[0], "created"), (times[1], "missed")]
    assert ((await plans.show(id_))["next_at"], (await plans.show(id_))["waits_for"]) == (times[2], None)


async def test_a_waiting_schedule_can_be_changed_paused_and_run_by_hand(plans: Plans) -> None:
    """An edit keeps the waiting occurrence, a pause drops it, and a run by hand is refused meanwhile."""
    id_ = await plans.add({"every": "10m"}, overlap="wait")
    second = later(plans.clock, 20 * MINUTE)
    await plans.tick(600)
    await plans.tick(600)
    with pytest.raises(Conflict, match="is not finished"):
        await plans.schedules.run(id_)
    assert (await plans.schedules.edit(id_, {"name": "renamed"}))["next_at"] == second
    await plans.tick()
    assert (await plans.show(id_))["waits_for"] is not None
    assert [line["at"] for line in await plans.schedules.preview(id_, 1)] == [second]

    await plans.schedules.pause(id_)
    assert ((await plans.show(id_))["next_at"], (await plans.show(id_))["waits_for"]) == (None, None)
    with pytest.raises(Invalid, match="overlap is 'never'"):
        await plans.schedules.edit(id_, {"overlap": "never"})


async def test_four_schedulers_keep_to_one_occurrence_at_a_time(plans: Plans) -> None:
    """Each checks and writes on the version that it has read."""
    id_ = await plans.add({"every": "10m"}, overlap="wait", catch_up="all")
    others = [plans.another() for _ in range(4)]
    plans.clock.advance(1800)
    for scheduler in others:
        await scheduler.step()
        plans.clock.advance(3)

    assert len(await plans.messages()) == 1
    assert (await plans.show(id_))["runs"] == 1
