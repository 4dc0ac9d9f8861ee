"""PostgreSQL itself killed with -9 under load (B17, E1, F10–F12)."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidings.drill.checker import InjectedFault, InjectionKind
from tidings.testing import PostgresCluster

from .conftest import Report
from .databases import PostgresDatabase, make_role
from .rig import IS_FULL, Options, drill, message_refs, portions, reasons, scaled

pytestmark = [pytest.mark.crash, pytest.mark.postgres]


@pytest.fixture
def victim() -> Iterator[PostgresCluster]:
    """A server of this test's own, because it is killed."""
    if PostgresCluster.find() is None:
        pytest.skip("no PostgreSQL 14 or newer: install postgresql")
    memory = Path("/dev/shm")  # fsync stays on, as in production, yet costs nothing
    parent = memory if memory.is_dir() else None
    with PostgresCluster(parent=parent, settings={"max_wal_size": "128MB"}) as running:
        yield running


@pytest.mark.parametrize("on_unknown", ["resend", "hold"] if IS_FULL else ["resend"])
async def test_a_killed_database_loses_nothing_and_work_resumes_automatically(
    tmp_path: Path, victim: PostgresCluster, on_unknown: str, report: Report
) -> None:
    """Three times: nothing lost, no unexplained duplicate, and no process had to be started again (F12)."""
    await make_role(victim)
    chance = random.Random(f"cuts {on_unknown}")
    parts = portions(message_refs("m", scaled(900, 5000)), 4)
    resumed: list[float] = []
    async with drill(tmp_path / "drill", PostgresDatabase(victim, "drill"), Options(on_unknown=on_unknown)) as rig:
        pair = [rig.spawn(), rig.spawn()]
        await rig.working(*pair)
        for i, refs in enumerate(parts[:-1]):
            before = rig.seen()
            middle = len(refs) // 2
            await rig.producer.produce(refs[10:middle], single=i % 2 == 1)
            await rig.until_seen(before + chance.randint(1, len(refs) // 3))
            producing = asyncio.create_task(rig.producer.produce(refs[middle:], single=True))
            begin = time.time()
            await asyncio.to_thread(victim.kill)
            await asyncio.sleep(chance.uniform(0.2, 1.5))
            await asyncio.to_thread(victim.start)
            rig.note(InjectedFault(InjectionKind.CUT, 0, begin, time.time(), "kill -9 of PostgreSQL"))
            started = time.time()
            await producing
            await rig.producer.produce(refs[:10])
            await rig.until_seen(before + len(refs))
            resumed.append(time.time() - started)
        await rig.producer.produce(parts[-1])
        idle = await rig.idle()
        trouble = [reason for sender in pair for reason in reasons(sender, "store_error")]
        codes = [await rig.stop(sender) for sender in pair]
        verdict = await rig.verdict()
    report(
        rig, verdict, kills_of_postgres=3, accepts_unknown=rig.producer.unknown, store_error=len(trouble),
        resumed_in=[round(seconds, 1) for seconds in resumed],
    )  # fmt: skip

    assert idle and codes == [0, 0], "the same processes go on"
    assert not verdict.violations
    assert max(resumed) < 15
    assert not [reason for reason in trouble if not reason.startswith("PostgreSQL")], "not known as an outage"
    assert trouble and rig.producer.unknown, "nobody noticed the cut: this run proves nothing (R7)"
