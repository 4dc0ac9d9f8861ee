"""The network between services is cut: a cable is pulled, and nobody is told (B17, E1, F10, F11, F24)."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidings.drill.ledger import Fault, Kind
from tidings.drill.rig import names
from tidings.testing import Cluster

from .books import PostgresDatabase
from .cable import ADDRESS, Cable, cable
from .conftest import Report
from .proxy import proxy
from .rig import Options, Rig, drill, portions, scaled

pytestmark = [pytest.mark.crash, pytest.mark.postgres]

LEASE, DEADLINE = 1.5, 2.0


@pytest.fixture
def line() -> Iterator[Cable]:
    """The cable between a worker and all that it needs."""
    with cable() as made:
        yield made


@contextlib.contextmanager
def services(rig: Rig, cluster: Cluster, line: Cable) -> Iterator[tuple[str, int]]:
    """Database and receiver on the other host; gives the one's address there, and the other's port."""
    inside = str(cluster.home / f"receiver-{rig.port}")  # sockets of the file system know no hosts
    with (
        proxy(inside, f"127.0.0.1:{rig.port}"),
        proxy(f"{ADDRESS}:0", inside, *line.at_the_services) as receiver,
        proxy(f"{ADDRESS}:0", str(cluster.home / ".s.PGSQL.5432"), *line.at_the_services) as database,
    ):
        yield database.address, receiver.port


async def test_a_worker_behind_a_pulled_cable_is_replaced_and_comes_back(
    tmp_path: Path, cluster: Cluster, postgres_database: PostgresDatabase, line: Cable, report: Report
) -> None:
    """For longer than its lease it reaches neither database nor receiver: another one does its work, nothing
    is lost, each second copy has its witness and its flag, and the same process goes on."""
    chance = random.Random("cables")
    cuts = min(10, scaled(2, 10))
    parts = portions(names("m", 80 * (cuts + 1)), cuts + 1)
    options = Options(lease=LEASE, beat=0.3, deadline=DEADLINE)
    async with drill(tmp_path / "drill", postgres_database, options) as rig:
        with services(rig, cluster, line) as (database, port):
            far = rig.spawn(
                database=postgres_database.through(database),
                host=ADDRESS,
                port=port,
                network=line.at_the_worker,
                breaker_pause=1,
            )
            near = rig.spawn(breaker_pause=1)
            await rig.working(far, near)
            for refs in parts[:-1]:
                before = rig.seen()
                producing = asyncio.create_task(rig.producer.produce(refs))
                await rig.until_seen(before + chance.randint(1, len(refs) // 2))
                begin = time.time()
                line.unplug()
                await asyncio.sleep(LEASE + DEADLINE + chance.uniform(0.5, 1.5))
                line.plug()
                # A request that waited in the line arrives late, until its sender has given it up.
                rig.note(Fault(Kind.CUT, far.pid, begin, time.time() + DEADLINE, "cable pulled"))
                await producing
            await rig.producer.produce(parts[-1])
            idle = await rig.idle(within=60)
            lost = near.facts("node_lost")
            codes = [await rig.stop(sender) for sender in (far, near)]
            verdict = await rig.verdict()
    report(rig, verdict, cables_pulled=cuts, node_lost=lost)

    assert idle and codes == [0, 0], "the same processes go on"
    assert set(verdict.crimes) <= {"overlap"}, "what was in the line may arrive beside its repetition"
    assert lost, "its lease never ran out: this run proves nothing (R7)"
