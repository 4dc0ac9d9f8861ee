"""A power cut under PostgreSQL: server and worker go down together, with all that lay in memory (E1, F14).

The disk is a real file system that is put back to what was written through; whoever sends and receives the
messages is elsewhere and goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from tidings.drill.checker import InjectedFault, InjectionKind
from tidings.drill.harness import DrillProcess
from tidings.testing import PostgresCluster

from .conftest import Report
from .databases import PostgresDatabase, make_role
from .power import Disk, cuttable
from .rig import IS_FULL, Options, Rig, drill, message_refs, portions, scaled

pytestmark = [pytest.mark.crash, pytest.mark.postgres]

SMALL = {"max_wal_size": "128MB", "min_wal_size": "32MB", "shared_buffers": "32MB"}
SLOWLY = {"delay": (0.05, 0.15)}  # so that something is under way at every cut


@pytest.fixture
def disk() -> Iterator[Disk]:
    """A disk of this test's own."""
    if PostgresCluster.find() is None:
        pytest.skip("no PostgreSQL 14 or newer: install postgresql")
    with cuttable() as made:
        yield made


@pytest.fixture
def server(disk: Disk) -> Iterator[PostgresCluster]:
    """A server on that disk; its first files are made without a sync, to be quick."""
    with PostgresCluster(disk.place / "data", settings=SMALL) as running:
        disk.write_through()
        yield running


def cut_power(disk: Disk, server: PostgresCluster, *others: DrillProcess) -> None:
    """All that runs on this machine ends, and its disk has what was written through."""
    server.halt()
    disk.keep()
    for sender in others:
        sender.process.kill()
        sender.process.wait()
    server.kill()
    disk.go_back()


async def cut_under_load(rig: Rig, disk: Disk, server: PostgresCluster, worker: DrillProcess) -> None:
    """Cut, start the server again, and write down what was done."""
    begin = time.time()
    await asyncio.to_thread(cut_power, disk, server, worker)
    await asyncio.to_thread(server.start)
    rig.note(InjectedFault(InjectionKind.CUT, 0, begin, time.time(), "power cut"))
    await rig.note_death(worker, begin, "power cut")


@pytest.mark.parametrize("on_unknown", ["resend", "hold"] if IS_FULL else ["resend"])
async def test_what_was_acknowledged_survives_every_power_cut_and_is_sent(
    tmp_path: Path, disk: Disk, server: PostgresCluster, on_unknown: str, report: Report
) -> None:
    """Nothing lost, nothing doubled without its line in the history, however often the power goes (F14)."""
    await make_role(server)
    chance = random.Random(f"power {on_unknown}")
    cuts = min(20, scaled(2, 20))
    parts = portions(message_refs("m", 150 * (cuts + 1)), cuts + 1)
    database, options = PostgresDatabase(server, "drill"), Options(on_unknown=on_unknown)
    async with drill(tmp_path / "drill", database, options, SLOWLY) as rig:
        for i, refs in enumerate(parts[:-1]):
            worker = rig.spawn()
            await rig.working(worker)
            before = rig.seen()
            await rig.producer.produce(refs[:50])
            await rig.until_seen(before + chance.randint(1, 25))
            producing = asyncio.create_task(rig.producer.produce(refs[50:], single=i % 2 == 0))
            await asyncio.sleep(chance.uniform(0, 0.02))
            await cut_under_load(rig, disk, server, worker)
            await producing
        last = rig.spawn()
        await rig.producer.produce(parts[-1])
        idle = await rig.idle()
        code = await rig.stop(last)
        verdict = await rig.verdict()
    report(rig, verdict, power_cuts=cuts, accepts_unknown=rig.producer.unknown)

    assert idle and code == 0
    assert not verdict.violations
    assert any(fault.held for fault in rig.faults), "nothing was under way: this run proves nothing (R7)"


async def test_a_server_that_does_not_write_through_is_caught(disk: Disk, server: PostgresCluster) -> None:
    """With `synchronous_commit=off` the same cut takes what was acknowledged: it is a cut, and no kill."""
    connection = await asyncpg.connect(server.dsn(), server_settings={"synchronous_commit": "off"})
    await connection.execute("alter system set wal_writer_delay = '10s'")  # nobody else writes it through
    await connection.execute("select pg_reload_conf()")
    await connection.execute("create table told (n int)")
    await connection.execute("checkpoint")
    told = 100
    for n in range(told):
        await connection.execute(f"insert into told values ({n})")
    await asyncio.to_thread(cut_power, disk, server)
    with contextlib.suppress(asyncpg.PostgresError, OSError):
        await connection.close(timeout=1)
    await asyncio.to_thread(server.start)
    connection = await asyncpg.connect(server.dsn())
    found = await connection.fetchval("select count(*) from told")
    await connection.close()

    assert found < told
