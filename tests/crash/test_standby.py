"""A real failover to an asynchronous standby that has not received the newest commits."""

from __future__ import annotations

from collections.abc import Iterator

import asyncpg
import pytest
from tests.contract.kernel_harness import KernelHarness

from tidings.kernel.clock import ManualClock
from tidings.model.errors import TemporaryError
from tidings.model.task import OnUnknown
from tidings.observability.events import DatabaseRewound
from tidings.store.postgres import PostgresStore
from tidings.testing import PostgresCluster

pytestmark = pytest.mark.slow


class Standby(PostgresCluster):
    """A standby of another cluster that has what that one had at `copy`, and receives nothing more."""

    def prepare(self) -> None:
        """Make the folder with its socket, so that its address is known."""
        self._home = self._private_folder()
        self._watch()
        self._binaries = self._reachable_binaries(self._home)

    def copy(self, primary: PostgresCluster) -> None:
        """Make its data, as pg_basebackup makes that of any standby."""
        options = ("-R", "-c", "fast", "--no-sync", "-U", "tidings", "-h", str(primary.home))
        self._call("pg_basebackup", "-D", self._data, *options)

    async def promote(self) -> None:
        """Make it the primary."""
        connection = await asyncpg.connect(self.dsn())
        try:
            assert await connection.fetchval("select pg_promote()")
        finally:
            await connection.close()


@pytest.fixture
def primary() -> Iterator[PostgresCluster]:
    """A server of this test's own: it is killed."""
    binaries = PostgresCluster.find()
    if binaries is None or not (binaries / "pg_basebackup").exists():
        pytest.skip("no PostgreSQL with pg_basebackup: install postgresql")
    with PostgresCluster() as cluster:
        yield cluster


@pytest.fixture
def standby() -> Iterator[Standby]:
    """Its standby."""
    made = Standby()
    yield made
    made.close()


async def test_a_failover_that_loses_the_newest_commits_is_noticed_and_sends_nothing_twice(
    primary: PostgresCluster, standby: Standby
) -> None:
    """The primary is killed, the standby promoted: the node connects again, and holds what it had sent."""
    clock = ManualClock()
    standby.prepare()
    url = primary.create_database("engine").replace(str(primary.home), f"{primary.home},{standby.home}")
    store = PostgresStore(f"{url}&target_session_attrs=read-write", now=clock.now, connections=2)
    await store.open()
    world = await KernelHarness(store, clock, on_unknown=OnUnknown.HOLD).open()
    id_ = await world.send()
    await world.worker.node.beat()
    standby.copy(primary)
    assert (await world.worker.runner.step()).claimed == 1
    lost = await world.send("grace")

    primary.kill()
    standby.start()
    await standby.promote()
    assert await claims(world) == 0, "nothing starts on a server that was not looked at"
    await world.worker._heartbeat_once()
    [event] = world.told(DatabaseRewound)
    assert isinstance(event, DatabaseRewound)
    assert event.unknown == 1
    await world.worker.runner.stop()
    assert ((shown := await world.show(id_))["state"], shown["unknown"]) == ("failed", True)
    assert not await store.read("message_find", id=lost, tenant="default"), "the standby never had it"
    assert len(world.channel.sent) == 1
    await store.close()


async def claims(world: KernelHarness) -> int:
    """How many tasks a step claims; connections to the dead server are given up one by one."""
    for _ in range(4):
        try:
            return (await world.worker.runner.step()).claimed
        except TemporaryError:
            continue
    return 0
