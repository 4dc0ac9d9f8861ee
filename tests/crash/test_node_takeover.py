"""Several processes on one database, and the work of one that dies (A1, B5, B17, E1)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tidings.drill.checker import DrillVerdict
from tidings.drill.engine_records import count_unfinished, read_engine_records
from tidings.drill.harness import DrillProcess

from .conftest import Report
from .databases import PostgresDatabase, SqliteFile
from .rig import IS_FULL, Options, Rig, drill, message_refs, portions, scaled

pytestmark = pytest.mark.crash


async def test_a_second_process_on_one_file_accepts_reads_and_takes_over(
    tmp_path: Path, sqlite_database: SqliteFile, report: Report
) -> None:
    """Only the first works; when it dies the second does, within seconds and without a word."""
    count = scaled(300, 2000)
    before, after = portions(message_refs("m", count), 2)
    async with drill(tmp_path / "drill", sqlite_database) as rig:
        first = rig.spawn()
        await rig.working(first)
        second = rig.spawn(produce=message_refs("by-second", 100))
        await rig.producer.produce(before)
        assert second.process.stdout is not None
        read = int(await asyncio.to_thread(second.process.stdout.readline))
        assert await rig.idle()
        alone = {copy.pid for copy in rig.copies()}
        producing = asyncio.create_task(rig.producer.produce(after))
        await rig.until_seen(rig.seen() + 20)
        fault = await rig.kill(first)
        await producing
        idle = await rig.idle()
        gap = min((copy.at for copy in rig.copies() if copy.pid == second.pid), default=1e18) - fault.end
        code = await rig.stop(second)
        verdict = await rig.verdict()
    report(rig, verdict, kills=1, taken_over_in=round(gap, 2))

    assert read >= 100, "the second reads what it accepted"
    assert alone == {first.pid}, "one working process per file"
    assert idle and code == 0
    assert not verdict.violations
    assert gap <= 3


@pytest.mark.postgres
@pytest.mark.parametrize("on_unknown", ["resend", "hold"] if IS_FULL else ["resend"])
async def test_four_processes_never_work_on_one_message_twice(
    tmp_path: Path, postgres_database: PostgresDatabase, on_unknown: str, report: Report
) -> None:
    """No kill, no duplicate, no overlap; and everybody had a share (B5)."""
    count = scaled(1000, 10_000)
    async with drill(tmp_path / "drill", postgres_database, Options(on_unknown=on_unknown, lease=10, beat=2)) as rig:
        four = [rig.spawn() for _ in range(4)]
        await rig.working(*four)
        await rig.producer.produce(message_refs("m", count))
        idle = await rig.idle()
        codes = [await rig.stop(sender) for sender in four]
        verdict = await rig.verdict()
        shares = sorted(sum(copy.pid == sender.pid for copy in rig.copies()) for sender in four)
    report(rig, verdict, kills=0, shares=shares)

    assert idle and codes == [0] * 4
    assert not verdict.violations and not verdict.duplicates
    assert shares[0] > 0, "somebody never worked: this run proves nothing (R7)"


class Resumed(NamedTuple):
    """How a dead node's work went on."""

    rig: Rig
    verdict: DrillVerdict
    waits: list[float]  # seconds from the death to the next copy, or to the verdict of the engine
    idle: bool


async def feed(rig: Rig, victim: DrillProcess) -> None:
    """Have more due than the survivor can take at once, until the victim has claimed some and died."""
    number = 0
    while victim.is_alive:
        if await count_unfinished(rig.database) <= rig.options.slots:
            await rig.producer.produce(message_refs(f"m{number}", 2 * rig.options.slots))
            number += 1
        await asyncio.sleep(0.02)


async def bereaved(folder: Path, database: PostgresDatabase, on_unknown: str, point: str) -> Resumed:
    """Two nodes with the default lease share work; one dies at a crash point, holding some of it."""
    defaults = Options(on_unknown=on_unknown, slots=16, lease=10, beat=2, deadline=10)
    async with drill(folder, database, defaults, {"delay": (0.2, 0.4)}) as rig:
        survivor, victim = rig.spawn(), rig.spawn(crash_at=point)
        await rig.working(survivor, victim)
        feeding = asyncio.create_task(feed(rig, victim))
        fault = await rig.died(victim, point)
        await feeding
        idle = await rig.idle()
        again = {copy.ref: copy.at for copy in rig.copies() if copy.pid == survivor.pid}
        records = await read_engine_records(database)
        settled = {ref: record.settled_at for ref, record in records.items() if record.settled_at is not None}
        verdict = await rig.verdict()
        return Resumed(rig, verdict, [again.get(ref, settled[ref]) - fault.begin for ref in fault.held], idle)


@pytest.mark.postgres
async def test_a_dead_nodes_work_resumes_in_time(
    tmp_path: Path, fresh_postgres: Callable[[], PostgresDatabase], report: Report
) -> None:
    """Not started within 15 s; started within the later of 15 s and its deadline + 5 s (here: 15 s)."""
    deaths = [("hold", "claimed:1"), ("hold", "started:1"), ("resend", "claimed:1"), ("resend", "sent:5")]
    resumed = await asyncio.gather(
        *(bereaved(tmp_path / f"{how} {point}", fresh_postgres(), how, point) for how, point in deaths)
    )
    for (how, point), went in zip(deaths, resumed, strict=True):
        slowest = round(max(went.waits, default=0), 1)
        report(went.rig, went.verdict, death=f"{how} {point}", left_behind=len(went.waits), slowest=slowest)

    assert all(went.waits for went in resumed), "a victim left nothing behind: this run proves nothing (R7)"
    assert all(went.idle and not went.verdict.violations for went in resumed)
    assert max(max(went.waits) for went in resumed) <= 15
