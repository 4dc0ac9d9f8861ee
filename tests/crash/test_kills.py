"""Workers killed with -9, at random and at every named crash point (A12, B5, B17, E1, E2, F3–F6)."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tidings.drill.checker import crash_coverage

from .conftest import Report
from .databases import Database
from .rig import IS_FULL, Options, drill, message_refs, portions, scaled, strike

pytestmark = pytest.mark.crash

POINTS = {"claimed": 4, "started": 3, "sent": 60, "settled": 5}
MOMENTS = ["random", *POINTS] if IS_FULL else ["mixed"]
DEATHS = [
    (on_unknown, moment)
    for on_unknown in ("resend", "hold")
    for moment in MOMENTS
    if (on_unknown, moment) != ("resend", "started")  # a channel that resends writes no start mark
]
ROUNDS = [1, 2] if IS_FULL else [1]


def blows(moment: str, count: int, chance: random.Random, *, marks: bool) -> list[str]:
    """When each worker of a drill dies."""
    known = {point: most for point, most in POINTS.items() if marks or point != "started"}
    cycle = {"random": ["random", "random", "random", "boot"], "mixed": ["random", *known, "boot"]}.get(
        moment, [moment]
    )
    chosen = [cycle[i % len(cycle)] for i in range(count)]
    return [f"{blow}:{chance.randint(1, known[blow])}" if blow in known else blow for blow in chosen]


@pytest.mark.parametrize("number", ROUNDS)
@pytest.mark.parametrize(("on_unknown", "moment"), DEATHS)
async def test_killed_workers_lose_nothing_and_repeat_nothing_in_silence(
    tmp_path: Path, database: Database, on_unknown: str, moment: str, number: int, report: Report
) -> None:
    """Nothing is lost; with `resend` each duplicate has a witness and a flag; with `hold` there is none."""
    seed = f"{type(database).__name__} {on_unknown} {moment} {number}"
    chance = random.Random(seed)
    kills = blows(moment, scaled(6, 20), chance, marks=on_unknown == "hold")
    parts = portions(message_refs("m", scaled(600, 5000)), len(kills) + 1)
    async with drill(tmp_path / "drill", database, Options(on_unknown=on_unknown, lease=1.0, beat=0.2)) as rig:
        for blow, refs in zip(kills, parts, strict=False):
            await strike(rig, blow, refs, chance)
        last = rig.spawn()
        await rig.producer.produce(parts[-1])
        idle = await rig.idle()
        assert await rig.stop(last) == 0
        verdict = await rig.verdict()
        met = crash_coverage(rig.copies(), rig.faults)
    report(rig, verdict, kills=len(rig.faults), **met._asdict(), run=seed)

    assert idle, "after the last kill everything must finish"
    assert not verdict.violations
    assert not [fault.how for fault in rig.faults if fault.how.startswith("never")]
    if on_unknown == "hold":
        assert not verdict.duplicates
        assert len(verdict.held) <= sum(begun for fault in rig.faults for begun in fault.held.values())
        assert verdict.delivered + len(verdict.held) >= len(rig.tried())
    else:
        assert not verdict.held
        assert verdict.delivered == len(rig.tried())
    if moment in ("random", "sent", "mixed"):
        assert met.before_record, "no worker died between send and record: this run proves nothing (R7)"
    if moment in ("claimed", "mixed"):
        assert met.before_start, "no worker died between claim and intent (R7)"
    if moment == "started":
        assert met.before_send, "no worker died between intent and send (R7)"
    if moment in ("settled", "mixed"):
        assert met.after_record, "no worker died between record and telling (R7)"


@pytest.mark.parametrize("on_unknown", ["resend", "hold"] if IS_FULL else ["resend"])
async def test_killed_workers_and_a_hostile_receiver_together(
    tmp_path: Path, database: Database, on_unknown: str, report: Report
) -> None:
    """Refusals and dropped answers between the kills: whatever is sent again or held has a witness (F24)."""
    chance = random.Random(f"hostile {on_unknown}")
    parts = portions(message_refs("h", scaled(300, 5000)), scaled(3, 20) + 1)
    options = Options(on_unknown=on_unknown, lease=1.0, beat=0.2)
    async with drill(tmp_path / "drill", database, options, {"refused": 0.02, "dropped": 0.03}) as rig:
        for refs in parts[:-1]:
            await strike(rig, "random", refs, chance)
        last = rig.spawn()
        await rig.producer.produce(parts[-1])
        idle = await rig.idle()
        assert await rig.stop(last) == 0
        verdict = await rig.verdict()
        dropped = sum(copy.did == "dropped" for copy in rig.copies())
    report(rig, verdict, kills=len(rig.faults), dropped=dropped)

    assert idle
    assert not verdict.violations
    assert dropped, "the receiver was never hostile (R7)"
    assert on_unknown == "resend" or not verdict.duplicates
    assert on_unknown == "hold" or not verdict.held
