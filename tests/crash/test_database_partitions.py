"""One worker loses its connection to the database while the others keep theirs (B17, F10, F11)."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidings.drill.checker import InjectedFault, InjectionKind
from tidings.testing import PostgresCluster

from ..time_limits import until
from .conftest import Report
from .databases import PostgresDatabase
from .proxy import Proxy, proxy
from .rig import Options, drill, message_refs, portions, scaled

pytestmark = [pytest.mark.crash, pytest.mark.postgres]


@pytest.fixture
def between(cluster: PostgresCluster) -> Iterator[Proxy]:
    """What stands between one worker and the server."""
    with proxy("127.0.0.1:0", str(cluster.home / ".s.PGSQL.5432")) as made:
        yield made


@pytest.mark.parametrize("on_unknown", ["resend", "hold"])
async def test_a_worker_that_is_cut_off_while_it_sends_loses_nothing(
    tmp_path: Path, postgres_database: PostgresDatabase, between: Proxy, on_unknown: str, report: Report
) -> None:
    """Its lease runs out while its requests are under way, and it comes back with their results.

    With `hold` the others wait for the deadline of what had started, so its results count and nobody sends
    twice. With `resend` nothing is marked, so the others send again when the lease is over, perhaps while the
    first request is still under way: each such copy has its witness and its flag.
    """
    options = Options(on_unknown=on_unknown, slots=8, lease=1.5, beat=0.3, deadline=12)
    async with drill(tmp_path / "drill", postgres_database, options, {"delay": (4.7, 5)}) as rig:
        cut_off, other = rig.spawn(database=postgres_database.through(between.address)), rig.spawn()
        await rig.working(cut_off, other)
        await rig.producer.produce(message_refs("m", 16))
        assert await until(lambda: any(copy.pid == cut_off.pid for copy in rig.copies()))
        begin = time.time()
        between.process.send_signal(signal.SIGSTOP)
        assert await until(lambda: other.facts("node_lost")), "its lease never ran out"
        rig.note(InjectedFault(InjectionKind.CUT, cut_off.pid, begin, time.time(), "black hole"))
        between.process.send_signal(signal.SIGCONT)
        idle = await rig.idle()
        stolen = other.facts("node_lost")
        codes = [await rig.stop(sender) for sender in (cut_off, other)]
        verdict = await rig.verdict()
    report(rig, verdict, lease_stolen=stolen)

    assert idle and codes == [0, 0]
    assert stolen, "the lease never ran out: this run proves nothing (R7)"
    if on_unknown == "hold":
        assert not verdict.violations and not verdict.duplicates and not verdict.held
    else:
        assert set(verdict.violations) <= {"overlap"}


@pytest.mark.parametrize("way", ["mute", "drip"])
async def test_answers_of_the_database_that_are_lost_or_drip_cost_no_second_copy(
    tmp_path: Path, postgres_database: PostgresDatabase, between: Proxy, way: str, report: Report
) -> None:
    """Claims, starts and results were written, and nobody heard so before the connection was reset. While the
    lease lives each is looked up or written again, and nothing is sent twice (F10, F11)."""
    chance = random.Random(f"lost answers {way}")
    rounds = scaled(4, 20)
    parts = portions(message_refs("m", 60 * rounds), rounds)
    async with drill(tmp_path / "drill", postgres_database, Options(lease=20)) as rig:
        pair = [rig.spawn(database=postgres_database.through(between.address)), rig.spawn()]
        await rig.working(*pair)
        for refs in parts:
            before = rig.seen()
            producing = asyncio.create_task(rig.producer.produce(refs, single=True))
            await rig.until_seen(before + chance.randint(1, len(refs) // 2))
            begin = time.time()
            between.say(way)
            await asyncio.sleep(chance.uniform(0.1, 1))
            between.say("cut")
            rig.note(InjectedFault(InjectionKind.CUT, pair[0].pid, begin, time.time(), way))
            await producing
            await asyncio.sleep(chance.uniform(0.2, 0.6))  # time to connect again, before the next is lost
        idle = await rig.idle()
        trouble, lost = pair[0].facts("store_error"), pair[1].facts("node_lost")
        codes = [await rig.stop(sender) for sender in pair]
        verdict = await rig.verdict()
    report(rig, verdict, answers_lost=rounds, store_error=trouble)

    assert idle and codes == [0, 0] and not lost
    assert not verdict.violations and not verdict.duplicates
    assert trouble, "nobody missed an answer: this run proves nothing (R7)"
