"""The network between services is cut: a cable is pulled, and nobody is told (B17, E1, F10, F11, F24)."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidings.drill.checker import InjectedFault, InjectionKind, ReceivedCopy
from tidings.drill.engine_records import in_flight_messages
from tidings.drill.harness import DrillProcess
from tidings.testing import PostgresCluster

from ..time_limits import slowness, until
from .cable import ADDRESS, Cable, cable
from .conftest import Report
from .databases import PostgresDatabase
from .proxy import proxy
from .rig import Options, Rig, drill, message_refs, portions, scaled

pytestmark = [pytest.mark.crash, pytest.mark.postgres]

LEASE, DEADLINE = 1.5, 2.0
RATE = 40.0  # a claim reserves send times over 250 ms, so a cut falls between two of them
SEND_WITHIN = 1.25  # seconds after the cut in which a request of an earlier claim may still be sent
# Linux asks three times, one second apart, for the neighbor's address. A packet may wait that long, out of
# reach of the TCP user timeout, and leaves if the cable is back by then, even after its socket was closed.
NEIGHBOR = 3.0


@pytest.fixture
def line() -> Iterator[Cable]:
    """The cable between a worker and all that it needs."""
    with cable() as made:
        yield made


@contextlib.contextmanager
def services(rig: Rig, cluster: PostgresCluster, line: Cable) -> Iterator[tuple[str, int]]:
    """Database and receiver on the other host; gives the one's address there, and the other's port."""
    inside = str(cluster.home / f"receiver-{rig.port}")  # sockets of the file system know no hosts
    with (
        proxy(inside, f"127.0.0.1:{rig.port}"),
        proxy(f"{ADDRESS}:0", inside, *line.at_the_services) as receiver,
        proxy(f"{ADDRESS}:0", str(cluster.home / ".s.PGSQL.5432"), *line.at_the_services) as database,
    ):
        yield database.address, receiver.port


async def pull(rig: Rig, line: Cable, far: DrillProcess, *, after: int) -> tuple[float, dict[str, bool]]:
    """Unplug the cable while the worker behind it has something at work; return when, and what it was."""
    while True:
        enough = rig.seen_from(far) + after
        assert await until(lambda: rig.seen_from(far) >= enough), "it does not go on"  # noqa: B023
        begin = time.time()
        line.unplug()
        if left := await in_flight_messages(rig.database, far.pid):
            return begin, left
        line.plug()
        rig.note(
            InjectedFault(InjectionKind.PARTITION, far.pid, begin, time.time() + DEADLINE, "nothing was in flight")
        )
        after = 1


async def test_a_worker_behind_a_pulled_cable_is_replaced_and_comes_back(
    tmp_path: Path, cluster: PostgresCluster, postgres_database: PostgresDatabase, line: Cable, report: Report
) -> None:
    """For longer than its lease it reaches neither database nor receiver while it has requests in flight:
    another worker does its work, nothing is lost, each second copy has its witness and its flag, and the same
    process goes on. Every second cut outlasts all that may keep a request in the kernel: the TCP user timeout
    has ended them by then, and none arrives any more."""
    chance = random.Random("cables")
    cuts = min(10, scaled(2, 10))
    options = Options(lease=LEASE, beat=0.3, deadline=DEADLINE, per_second=RATE)
    in_flight: list[int] = []
    held_up: list[ReceivedCopy] = []
    late: list[ReceivedCopy] = []
    async with drill(tmp_path / "drill", postgres_database, options) as rig:
        with services(rig, cluster, line) as (database, port):
            far = rig.spawn(
                database=postgres_database.through(database),
                host=ADDRESS,
                port=port,
                network=line.at_the_worker,
                breaker_timeout=1,
            )
            await rig.working(far)
            for cut, refs in enumerate(portions(message_refs("m", 80 * cuts), cuts)):
                producing = asyncio.create_task(rig.producer.produce(refs))
                begin, left = await pull(rig, line, far, after=chance.randint(1, len(refs) // 4))
                near = rig.spawn(breaker_timeout=1)
                assert await until(lambda: near.facts("tasks_reaped")), "nobody replaces it"  # noqa: B023
                outlasts = cut % 2 == 1
                if outlasts:
                    given_up = begin + SEND_WITHIN * slowness() + DEADLINE + NEIGHBOR
                    await asyncio.sleep(max(0, given_up - time.time()))
                await asyncio.sleep(chance.uniform(0, 1))
                line.plug()
                end = time.time()
                rig.note(InjectedFault(InjectionKind.PARTITION, far.pid, begin, end + DEADLINE, "cable pulled", left))
                await producing
                assert await rig.idle()
                assert await rig.stop(near) == 0
                in_flight.append(len(left))
                (late if outlasts else held_up).extend(
                    copy
                    for copy in rig.copies()
                    if copy.pid == far.pid and copy.ref in left and copy.attempt == 1 and copy.at > end
                )
            code = await rig.stop(far)
            verdict = await rig.verdict()
    report(rig, verdict, cables_pulled=cuts, in_flight=sum(in_flight), held_up=len(held_up))

    assert code == 0, "the same process goes on"
    assert not verdict.violations
    assert not late, "a request arrived after its sender had given it up: the TCP user timeout did not end it"
