"""A rate limit while the processes that share it are killed and started."""

from __future__ import annotations

from bisect import bisect_left
from pathlib import Path
from typing import Any

import pytest

from tidings.drill.json_log import read_log

from .databases import Database
from .rig import Options, drill, message_refs

pytestmark = pytest.mark.crash

RATE = 20
STARTS = 2


@pytest.mark.postgres
async def test_a_rate_limit_holds_while_processes_are_killed_and_started(
    tmp_path: Path, postgres_database: Database
) -> None:
    """In any second at most `per_second` sends start, over all processes, though each starts slowly."""
    await run(tmp_path, postgres_database, overlap=True)


async def test_a_rate_limit_holds_while_another_process_takes_over_the_file(
    tmp_path: Path, sqlite_database: Database
) -> None:
    """The next process goes on behind the last slot that the killed one had reserved."""
    await run(tmp_path, sqlite_database, overlap=False)


async def run(folder: Path, database: Database, *, overlap: bool) -> None:
    """Replace one process after the other, and look at when each of their requests began."""
    sends = folder / "sends.jsonl"
    sends.touch()
    slow: dict[str, Any] = {"sends": str(sends), "slow_client": 0.12}
    options = Options(per_second=RATE, slots=8)
    async with drill(folder / "drill", database, options, {"delay": (0.0, 0.01)}) as rig:
        await rig.producer.produce(message_refs("m", 50 * STARTS))
        fleet = [rig.spawn(**slow)]
        for _ in range(STARTS):
            await rig.until_seen(rig.seen() + 10)
            fleet.append(rig.spawn(**slow))
            if overlap:
                await rig.working(fleet[-1])
            await rig.until_seen(rig.seen() + 15)
            await rig.kill(fleet.pop(0))
        await rig.until_seen(rig.seen() + 25)
    begun = sorted(line["at"] for line in read_log(sends))
    fullest = max(bisect_left(begun, at + 1) - i for i, at in enumerate(begun))
    assert len({line["pid"] for line in read_log(sends)}) == STARTS + 1
    assert fullest <= RATE, f"{fullest} sends started within one second"
