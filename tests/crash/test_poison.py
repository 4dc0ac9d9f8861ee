"""A message whose handling kills its worker, every time (F31)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tidings.drill.engine_records import read_engine_records

from .conftest import Report
from .databases import Database
from .rig import Options, drill, message_refs, scaled

pytestmark = pytest.mark.crash


async def test_a_message_that_kills_its_workers_is_quarantined(
    tmp_path: Path, database: Database, report: Report
) -> None:
    """Quarantined after its third victim; all its neighbours arrive, and the workers live on."""
    good, poison = message_refs("good", scaled(120, 1000)), ["poison-1", "poison-2"][: scaled(1, 2)]
    options = Options(slots=8, lease=1.0, beat=0.2, quarantine_after=3)
    async with drill(tmp_path / "drill", database, options) as rig:
        await rig.producer.produce([*good[:50], *poison, *good[50:]])
        sender = rig.spawn(poison=True)
        waiting = asyncio.create_task(rig.idle())
        while not waiting.done():
            if not sender.is_alive:
                await rig.died(sender, "poison")
                assert len(rig.faults) < 20, "the poison is never set aside"
                sender = rig.spawn(poison=True)
            await asyncio.sleep(0.02)
        idle = await waiting
        code = await rig.stop(sender)
        verdict = await rig.verdict()
        said = await read_engine_records(database)
    delivered = {copy.ref for copy in rig.copies()}
    report(rig, verdict, victims=len(rig.faults), crashes={ref: said[ref].crashes for ref in poison})

    assert idle and code == 0
    assert all(said[ref].state == "failed" for ref in poison)
    assert delivered == set(good)
    assert set(verdict.violations) <= {"lost", "unwitnessed"} and {*verdict.lost, *verdict.unwitnessed} == set(poison)
