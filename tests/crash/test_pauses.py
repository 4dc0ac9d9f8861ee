"""Workers stopped with SIGSTOP for longer than their lease, on PostgreSQL (B5, B17, F8, F9)."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tidings.drill.engine_records import in_flight_messages, read_engine_records
from tidings.drill.harness import DrillProcess

from ..time_limits import Limit, until
from .conftest import Report
from .databases import Database, PostgresDatabase, late_results
from .rig import STANDSTILL, Options, Rig, drill, message_refs, portions, scaled

pytestmark = [pytest.mark.crash, pytest.mark.postgres]

LEASE = 2.0


def options(on_unknown: str = "resend") -> Options:
    """A lease that a drill can outwait."""
    return Options(on_unknown=on_unknown, lease=LEASE, beat=0.4, deadline=1.5)


def _is_fenced_again(sender: DrillProcess, before: int) -> bool:
    return sender.facts("node_fenced") > before


async def test_a_worker_paused_beyond_its_lease_is_fenced_off(
    tmp_path: Path, postgres_database: PostgresDatabase, report: Report
) -> None:
    """Its late results change nothing and are kept as evidence; duplicates have a witness and a flag (F9)."""
    chance = random.Random("pauses")
    pauses = scaled(2, 6)
    parts = portions(message_refs("p", scaled(800, 5000)), pauses + 1)
    async with drill(tmp_path / "drill", postgres_database, options(), {"delay": (0.01, 0.05)}) as rig:
        pair = [rig.spawn(), rig.spawn()]
        await rig.working(*pair)
        for i, refs in enumerate(parts[:-1]):
            before = rig.seen()
            producing = asyncio.create_task(rig.producer.produce(refs))
            await rig.until_seen(before + chance.randint(1, len(refs) // 4))
            await asyncio.sleep(chance.uniform(0, 0.03))
            paused, other = pair[i % 2], pair[1 - i % 2]
            fenced = paused.facts("node_fenced")
            await rig.pause(paused, LEASE + 2.5, heir=other)
            await producing
            assert await until(partial(_is_fenced_again, paused, fenced))
        await rig.producer.produce(parts[-1])
        idle = await rig.idle()
        fenced = sum(sender.facts("node_fenced") for sender in pair)
        stolen = sum(sender.facts("node_lost") for sender in pair)
        codes = [await rig.stop(sender) for sender in pair]
        verdict, late = await rig.verdict(), await late_results(postgres_database)
    report(rig, verdict, pauses=pauses, lease_stolen=stolen, node_fenced=fenced, late_results_kept=late)

    assert idle
    assert codes == [0, 0]
    assert not verdict.violations
    assert stolen >= 1 and fenced >= 1, "no lease was stolen: this run proves nothing (R7)"
    assert late >= 1, "no late result came in (R7)"


async def stolen_claim(rig: Rig, *, messages: int = 40, **plant: Any) -> tuple[int, int]:
    """Stop A right after a claim, let B take over, wake A; gives how much A held, and what of it A sent."""
    await rig.producer.produce(message_refs("s", messages))
    first = rig.spawn(pause_at="claimed:1", **plant)
    stopped_at = await rig.stopped(first)
    left = await in_flight_messages(rig.database, first.pid)
    second = rig.spawn(**plant)
    await rig.working(second)
    assert await until(lambda: any(copy.ref in left for copy in rig.copies()), moved=rig.seen)
    rig.wake(first, stopped_at, "after its claim", left)
    assert await until(lambda: first.facts("node_fenced")), "it never noticed that its lease was gone"
    assert await rig.idle()
    await asyncio.sleep(0.3)  # what it had at hand would go out at once
    return len(left), sum(copy.pid == first.pid and copy.ref in left for copy in rig.copies())


@pytest.mark.parametrize("on_unknown", ["resend", "hold"])
async def test_a_worker_paused_between_claim_and_send_does_not_send(
    tmp_path: Path, postgres_database: PostgresDatabase, on_unknown: str
) -> None:
    """It looks at its lease on waking; the other one has sent everything, once (F8)."""
    async with drill(tmp_path / "drill", postgres_database, options(on_unknown)) as rig:
        had, sent = await stolen_claim(rig)
        verdict = await rig.verdict()

    assert had and not sent
    assert not verdict.violations and not verdict.duplicates and not verdict.held


async def test_a_worker_that_trusts_itself_after_a_pause_is_caught(
    tmp_path: Path, postgres_database: PostgresDatabase
) -> None:
    """Planted: without the look at its lease, the drill above fails."""
    async with drill(tmp_path / "drill", postgres_database, options()) as rig:
        had, sent = await stolen_claim(rig, plant="no_doubt")

    assert had and sent


async def test_a_settlement_without_fence_is_caught(tmp_path: Path, postgres_database: PostgresDatabase) -> None:
    """Planted: the woken worker gives back what the other is sending, and it is sent twice at once."""
    slow = Options(lease=LEASE, beat=0.4, deadline=6)  # the other is still sending when it has woken
    async with drill(tmp_path / "drill", postgres_database, slow, {"delay": (2.5, 3.5)}) as rig:
        await stolen_claim(rig, messages=24, plant="no_fence")
        verdict = await rig.verdict()

    assert verdict.unexplained and verdict.overlap


async def test_a_fenced_worker_begins_anew_while_its_old_sends_end(
    tmp_path: Path, postgres_database: PostgresDatabase
) -> None:
    """The new incarnation beats from the start, so nobody takes it for dead in its turn."""
    slow = Options(lease=LEASE, beat=0.4, deadline=11)
    async with drill(tmp_path / "drill", postgres_database, slow, {"delay": (9.5, 10)}) as rig:
        first = rig.spawn()
        await rig.working(first)
        await rig.producer.produce(message_refs("m", 10))
        await rig.until_seen(10)
        second = rig.spawn()
        await rig.working(second)
        await rig.pause(first, LEASE + 2.5, heir=second)
        idle = await rig.idle()
        verdict = await rig.verdict()

    assert idle
    assert first.facts("node_fenced") == 1, "given up once, for its pause, and not again"
    assert not verdict.violations


async def test_an_answer_that_came_during_a_pause_is_used_as_evidence(tmp_path: Path, database: Database) -> None:
    """The worker wakes past its deadline with a 200 in its socket: it was sent, and nothing stays held.

    On PostgreSQL another worker has declared it dead and holds its messages meanwhile. On SQLite nobody may:
    the paused process keeps its lock, and settles its own claim.
    """
    refs = message_refs("e", 8)
    slow = Options(on_unknown="hold", lease=LEASE, beat=0.4, deadline=2)
    async with drill(tmp_path / "drill", database, slow, {"delay": (1.0, 1.2)}) as rig:
        first = rig.spawn()
        await rig.working(first)
        await rig.producer.produce(refs)
        await rig.until_seen(len(refs))
        stopped_at = time.time()
        first.process.send_signal(signal.SIGSTOP)
        left = await in_flight_messages(database, first.pid)
        if isinstance(database, PostgresDatabase):
            await rig.working(rig.spawn())
            await states(rig, "failed")
        await asyncio.sleep(max(0.0, stopped_at + slow.deadline + 2.5 - time.time()))
        rig.wake(first, stopped_at, "SIGSTOP", left)
        await states(rig, "done")
        verdict, late = await rig.verdict(), await late_results(database)

    assert set(left) == set(refs), "it was stopped too late: this run proves nothing (R7)"
    assert not verdict.violations and not verdict.duplicates and not verdict.held
    assert late == (len(refs) if isinstance(database, PostgresDatabase) else 0)


async def states(rig: Rig, wanted: str) -> None:
    """Wait until every message has this state."""
    limit = Limit(STANDSTILL / 4)
    while {book.state for book in (await read_engine_records(rig.database)).values()} != {wanted}:
        assert not limit.is_over(), await read_engine_records(rig.database)
        await asyncio.sleep(0.05)
