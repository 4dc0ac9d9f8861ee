"""Workers receive SIGTERM during their work (E8, F7)."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from tidings.drill.engine_records import in_flight_messages, read_engine_records

from .conftest import Report
from .databases import Database
from .rig import Options, drill, message_refs, portions, scaled

pytestmark = pytest.mark.crash


@pytest.mark.parametrize("on_unknown", ["resend", "hold"])
async def test_a_worker_that_is_asked_to_stop_finishes_or_gives_back(
    tmp_path: Path, database: Database, on_unknown: str, report: Report
) -> None:
    """It leaves nothing at work, nothing in doubt, and no duplicate at all (F7)."""
    stops = scaled(2, 10)
    parts = portions(message_refs("m", scaled(240, 3000)), stops + 1)
    longest, left = 0.0, 0
    async with drill(tmp_path / "drill", database, Options(on_unknown=on_unknown), {"delay": (0.05, 0.3)}) as rig:
        for refs in parts[:-1]:
            before = rig.seen()
            producing = asyncio.create_task(rig.producer.produce(refs))
            sender = rig.spawn()
            assert await rig.until_seen(before + len(refs) // 3)
            began = time.monotonic()
            assert await rig.stop(sender) == 0
            longest = max(longest, time.monotonic() - began)
            left += len(await in_flight_messages(database, sender.pid))
            await producing
        last = rig.spawn()
        await rig.producer.produce(parts[-1])
        idle = await rig.idle()
        assert await rig.stop(last) == 0
        verdict = await rig.verdict()
        doubted = sum(book.unknown for book in (await read_engine_records(database)).values())
    report(rig, verdict, stops=stops, in_doubt=doubted, left_at_work=left, longest_stop=round(longest, 1))

    assert idle
    assert not verdict.violations and not verdict.duplicates and not verdict.held
    assert (left, doubted) == (0, 0)
    assert longest < 10
