"""Workers whose clocks are wrong by ten minutes, in either direction, or run too fast (B13, F19)."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Report
from .databases import PostgresDatabase, SqliteFile
from .rig import Options, drill, message_refs, portions, scaled

pytestmark = pytest.mark.crash

CLOCKS = ("+10m", "-10m", "+0 x1.5")


def wrong(clock: str) -> dict[str, str]:
    """What makes a process see another time of day; its stopwatch goes on as always."""
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    if not found:
        pytest.skip("faketime is not installed: apt install faketime")
    return {"LD_PRELOAD": str(found[0]), "FAKETIME": clock, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


@pytest.mark.postgres
async def test_wrong_clocks_send_nothing_early_and_steal_nothing(
    tmp_path: Path, postgres_database: PostgresDatabase, report: Report
) -> None:
    """A right clock beside three wrong ones: nothing early, nothing twice, nobody taken for dead (F19)."""
    now, later = portions(message_refs("m", scaled(300, 4000)), 2)
    async with drill(
        tmp_path / "drill", postgres_database, Options(lease=30, beat=2, deadline=20), {"delay": (0.05, 0.2)}
    ) as rig:
        fleet = [rig.spawn(), *(rig.spawn(surroundings=wrong(clock)) for clock in CLOCKS)]
        await rig.working(*fleet)
        await rig.producer.produce(later, delays=(1.0, 1.5, 2.0, 2.5))
        await rig.producer.produce(now)
        idle = await rig.idle()
        codes = [await rig.stop(sender) for sender in fleet]
        verdict = await rig.verdict()
        shares = [sum(copy.pid == sender.pid for copy in rig.copies()) for sender in fleet]
    report(rig, verdict, shares=shares)

    assert idle and codes == [0] * len(fleet)
    assert not verdict.violations and not verdict.duplicates
    assert not any(sender.facts("node_fenced") for sender in fleet)
    assert any(shares[1:]), "no wrong clock ever sent: this run proves nothing (R7)"


async def test_what_was_accepted_with_a_clock_an_hour_ahead_is_sent_when_it_is_right(
    tmp_path: Path, sqlite_database: SqliteFile
) -> None:
    """F20: a process accepts messages an hour ahead and dies; the next, with the right time, sends them."""
    refs = message_refs("m", 20)
    async with drill(tmp_path / "drill", sqlite_database) as rig:
        ahead = rig.spawn(crash_at="claimed:1", surroundings=wrong("+1h"), produce=refs)
        await rig.died(ahead, "claimed:1")
        before = rig.seen()
        right = rig.spawn()
        await rig.until_seen(before + 1)
        idle = await rig.idle()
        told = right.facts("clock_set_back")
        code = await rig.stop(right)
        copies = {copy.ref for copy in rig.copies()}
    assert idle and code == 0
    assert copies and told == 1
    assert before == 0, "it was sent with the wrong clock: this run proves nothing (R7)"
