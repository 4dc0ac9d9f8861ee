"""A process is killed while it accepts messages, and its client repeats the calls (B4, E1, F1, F2)."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from .conftest import Report
from .databases import Database
from .rig import IS_FULL, Options, drill, message_refs, portions, scaled

pytestmark = pytest.mark.crash


async def test_what_a_killed_process_had_accepted_arrives_once(
    tmp_path: Path, database: Database, report: Report
) -> None:
    """Acknowledged ones are there; the others are repeated with the same key and become one message each."""
    chance = random.Random("accepts")
    kills = scaled(2, 10)
    unanswered = 0
    async with drill(tmp_path / "drill", database, Options(lease=1.0, beat=0.2)) as rig:
        for refs in portions(message_refs("m", scaled(300, 5000)), kills):
            sender = rig.spawn(produce=list(refs))
            wanted = sum(line.acked is not None for line in rig.tried()) + chance.randint(1, len(refs) // 2)
            assert await rig.until_acknowledged(wanted)
            await rig.kill(sender)
            acked = {line.ref for line in rig.tried() if line.acked is not None}
            unanswered += len([line for line in rig.tried() if line.acked is None])
            await rig.producer.produce([ref for ref in refs if ref not in acked], single=True)
        last = rig.spawn()
        idle = await rig.idle()
        assert await rig.stop(last) == 0
        verdict = await rig.verdict()
    report(rig, verdict, kills=kills, unanswered=unanswered)

    assert idle
    assert unanswered or not IS_FULL, "no accept was cut short: this run proves nothing (R7)"
    assert not verdict.violations
    assert verdict.delivered == len(rig.tried())
