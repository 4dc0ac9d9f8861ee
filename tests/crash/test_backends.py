"""PostgreSQL ends the connections of its clients under load, as at a failover (B17, F13, F38)."""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path

import pytest

from tidings.drill.checker import InjectedFault, InjectionKind

from .conftest import Report
from .databases import ROLE, PostgresDatabase
from .rig import Options, drill, message_refs, portions, scaled

pytestmark = [pytest.mark.crash, pytest.mark.postgres]

_END_ALL = f"select count(pg_terminate_backend(pid)) from pg_stat_activity where usename = '{ROLE}'"


async def test_workers_whose_connections_are_ended_go_on_by_themselves(
    tmp_path: Path, postgres_database: PostgresDatabase, report: Report
) -> None:
    """Every connection of every worker, again and again: they connect anew, statements and all, and each
    message that was not on its way at that moment arrives once (F13)."""
    chance = random.Random("backends")
    parts = portions(message_refs("m", scaled(400, 4000)), scaled(4, 20) + 1)
    async with drill(tmp_path / "drill", postgres_database, Options(lease=30, beat=2, deadline=20)) as rig:
        pair = [rig.spawn(), rig.spawn()]
        await rig.working(*pair)
        ended = 0
        for refs in parts[:-1]:
            before = rig.seen()
            producing = asyncio.create_task(rig.producer.produce(refs))
            await rig.until_seen(before + chance.randint(1, len(refs) // 2))
            begin = time.time()
            ended += (await postgres_database.rows(_END_ALL))[0][0]
            rig.note(InjectedFault(InjectionKind.CUT, 0, begin, time.time(), "backends ended"))
            await producing
        await rig.producer.produce(parts[-1])
        idle = await rig.idle()
        codes = [await rig.stop(sender) for sender in pair]
        verdict = await rig.verdict()
    report(rig, verdict, ended=ended)

    assert ended, "nobody was connected: this run proves nothing (R7)"
    assert idle and codes == [0, 0], "the same processes go on"
    assert not verdict.violations and not verdict.held
    assert verdict.delivered == len(rig.tried())


async def test_a_worker_that_is_killed_during_a_failover_costs_no_more_than_either_alone(
    tmp_path: Path, postgres_database: PostgresDatabase, report: Report
) -> None:
    """All connections are ended and, before anybody has connected anew, one of the workers is killed: the
    other one takes over what both had, and nothing is lost or repeated in silence (F38)."""
    parts = portions(message_refs("m", scaled(200, 3000)), scaled(1, 5) + 1)
    async with drill(tmp_path / "drill", postgres_database, Options()) as rig:
        steady = rig.spawn()
        await rig.working(steady)
        for refs in parts[:-1]:
            victim = rig.spawn()
            await rig.working(victim)
            before = rig.seen()
            producing = asyncio.create_task(rig.producer.produce(refs))
            await rig.until_seen(before + len(refs) // 4)
            begin = time.time()
            ended = (await postgres_database.rows(_END_ALL))[0][0]
            await rig.kill(victim, "during a failover")
            rig.note(InjectedFault(InjectionKind.CUT, 0, begin, time.time(), "backends ended"))
            assert ended, "nobody was connected: this run proves nothing (R7)"
            await producing
        await rig.producer.produce(parts[-1])
        idle = await rig.idle()
        code = await rig.stop(steady)
        verdict = await rig.verdict()
    report(rig, verdict, kills=len(parts) - 1)

    assert idle and code == 0, "the one that lives goes on"
    assert not verdict.violations and not verdict.held
    assert verdict.delivered == len(rig.tried())
