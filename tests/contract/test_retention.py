"""Retention: what is deleted by age, and rows of stopped nodes (design, rule 17)."""

from __future__ import annotations

from tidings.kernel.clock import ManualClock
from tidings.kernel.worker import Worker
from tidings.store.port import ClaimRequest, Step, Store

from .kernel_harness import KernelHarness


async def forgotten(worker: Worker, clock: ManualClock, *, days: float) -> int:
    """Let days pass, and let the pruner look; gives the processes that it forgot."""
    clock.advance(hours=24 * days)
    await worker.node.beat()
    return (await worker.pruner.step()).nodes


async def test_a_process_that_left_is_named_as_long_as_there_is_history_of_it(store: Store, clock: ManualClock) -> None:
    """A7: restarts leave no rows for ever, and no line of the history loses the name in it."""
    world = await KernelHarness(store, clock).open()
    sent = await world.send()
    await world.step()
    await world.worker.node.leave()
    heir = world.node()
    await heir.node.join()

    assert await forgotten(heir, clock, days=29) == 0
    assert [line["node_name"] for line in (await world.show(sent))["history"]] == [world.worker.node.name] * 2
    assert await forgotten(heir, clock, days=2.5) == 0, "PostgreSQL still has the day on which it worked"
    assert await forgotten(heir, clock, days=1) == 1
    assert await forgotten(heir, clock, days=100) == 0, "whoever lives is never forgotten"
    assert [row["name"] for row in await store.read("node_list")] == [heir.node.name]


async def test_a_process_that_left_and_holds_something_all_the_same_is_not_forgotten(
    store: Store, clock: ManualClock
) -> None:
    """B5: a claim that was carried out after its node was buried still names a process that is known."""
    world = await KernelHarness(store, clock).open()
    await world.send()
    await store.write([Step("node_gone", {"id": world.worker.node.id})])
    assert (await store.claim(world.worker.node.id, ClaimRequest({"main": 1}, 1))).tasks
    heir = world.node()
    await heir.node.join()

    assert await forgotten(heir, clock, days=40) == 0
