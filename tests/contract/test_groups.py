"""Group commit on SQLite: nobody acts on what is not on the disk."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.contract.kernel_harness import KernelHarness

from tidings.kernel.clock import ManualClock
from tidings.model.outcome import Done, Outcome
from tidings.model.task import NodeId, TaskId
from tidings.observability.events import BatchSettled, Event, StoreError
from tidings.store.port import ClaimRequest, ClaimResult
from tidings.store.sqlite import SqliteStore


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[KernelHarness]:
    """An engine that commits on its own thread, as a served one does."""
    clock = ManualClock()
    store = SqliteStore(tmp_path / "tidings.db", now=clock.now)
    await store.open()
    yield await KernelHarness(store, clock).open()
    await store.close()


async def test_a_claim_that_cannot_be_written_sends_nothing_and_is_made_again(world: KernelHarness) -> None:
    """Rules 2 and 6: contents are loaded while the disk works, but nothing is sent before the commit."""
    id_ = await world.send()
    sent_while_unwritten: list[bool] = []
    refused: list[bool] = []
    settled = asyncio.Event()
    assert isinstance(world.store, SqliteStore)
    connection: Any = world.store._connection

    touched: set[str] = set()

    def commit() -> bool:
        """Refuse the first commit that holds a claim."""
        held = "tasks" in touched
        touched.clear()
        if held and not refused:
            refused.append(True)
            sent_while_unwritten.append(bool(world.channel.sent))
            return True
        return False

    def told(event: Event) -> None:
        world.events.append(event)
        if isinstance(event, BatchSettled):
            settled.set()

    def answer(_message: object) -> Outcome:
        assert refused, "sent before its claim was on the disk"
        return Done()

    connection.set_update_hook(lambda _kind, _database, table, _row: touched.add(table))
    connection.set_commit_hook(commit)
    world.channel.script = answer
    worker = world.node()
    worker.runner._emit = told
    worker.runner._settler._emit = told
    await worker.node.join()
    await worker.runner.start()
    async with asyncio.timeout(20):
        await settled.wait()
    await worker.runner.stop()
    assert sent_while_unwritten == [False]
    assert world.channel.ids == [id_]
    assert (await world.show(id_))["attempts"] == 1
    assert any(isinstance(event, StoreError) and event.where == "claim" for event in world.events)


async def test_an_answer_ahead_is_followed_by_what_the_commit_said(world: KernelHarness) -> None:
    """A member is told its result before the commit, and the commit's failure where it waits for that."""
    store = world.store
    assert isinstance(store, SqliteStore)
    assert store._writer is not None
    assert store._connection is not None
    store._connection.set_commit_hook(lambda: True)
    value, durable = await store._writer.run_ahead(lambda connection: connection.changes())
    assert value >= 0
    with pytest.raises(Exception, match="constraint"):
        await durable
    store._connection.set_commit_hook(None)
    _, durable = await store._writer.run_ahead(lambda connection: connection.changes())
    assert await durable, "nobody else wrote"


async def test_what_was_accepted_in_the_transaction_of_its_claim_is_sent_at_the_first_try(world: KernelHarness) -> None:
    """Its content is not on the disk when the claim is answered, so it is loaded again after the commit."""
    await world.send("first")
    store = world.store
    _, claimed = await asyncio.gather(
        world.send("second"), store.claim(world.worker.node.id, ClaimRequest({"main": 2}, 2))
    )
    assert len(claimed.tasks) == 2, "both in one transaction"
    assert claimed.durable is not None
    assert not await claimed.durable, "so what was loaded meanwhile does not stand"


async def test_the_runner_loads_again_what_was_accepted_in_the_transaction_of_its_claim(
    world: KernelHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same, seen from outside: both are sent, at the first try."""
    done = asyncio.Event()
    claim, load = world.store.claim, world.store.load
    loaded = threading.Event()
    accepting: list[asyncio.Task[str]] = []

    async def claim_and_accept(node: NodeId, wish: ClaimRequest) -> ClaimResult:
        if accepting:
            return await claim(node, wish)
        accepting.append(asyncio.create_task(world.send("second")))
        return await asyncio.create_task(claim(node, wish))

    async def load_first(name: str, tasks: Sequence[TaskId]) -> Any:
        rows = await load(name, tasks)
        loaded.set()
        return rows

    def answer(_message: object) -> Outcome:
        if len(world.channel.sent) == 2:
            done.set()
        return Done()

    def commit() -> bool:
        """Take no less time than the load does."""
        if accepting:
            loaded.wait(10)
        return False

    assert isinstance(world.store, SqliteStore)
    connection: Any = world.store._connection
    connection.set_commit_hook(commit)
    monkeypatch.setattr(world.store, "claim", claim_and_accept)
    monkeypatch.setattr(world.store, "load", load_first)
    world.channel.script = answer
    first = await world.send("first")
    worker = world.node()
    await worker.node.join()
    await worker.runner.start()
    async with asyncio.timeout(20):
        await done.wait()
    await worker.runner.stop()
    for id_ in (first, accepting[0].result()):
        assert (await world.show(id_))["attempts"] == 1
