"""A SQLite file that somebody else holds: for longer than a lease, or again and again (B17, F17, F18)."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import apsw
import pytest

from .conftest import Report
from .databases import SqliteFile
from .rig import Options, drill, message_refs, portions, scaled

pytestmark = pytest.mark.crash


def hold(path: Path, seconds: float) -> None:
    """A transaction that writes nothing and ends late."""
    connection = apsw.Connection(str(path))
    try:
        connection.setbusytimeout(20_000)
        connection.execute("begin immediate")
        time.sleep(seconds)
        connection.execute("commit")
    finally:
        connection.close()


def storm(path: Path, stop: threading.Event) -> int:
    """One short transaction after the other."""
    count = 0
    while not stop.is_set():
        hold(path, 0.003)
        count += 1
        time.sleep(0.002)
    return count


async def test_a_file_that_is_held_makes_nobody_send_twice(
    tmp_path: Path, sqlite_database: SqliteFile, report: Report
) -> None:
    """Held beyond the lease while messages are on their way, then stormed: results wait and are written
    before anything new begins, and the process that stands by takes nothing over (F17, F18)."""
    held, stormed = portions(message_refs("m", scaled(200, 2000)), 2)
    stop = threading.Event()
    async with drill(
        tmp_path / "drill", sqlite_database, Options(lease=1, beat=0.2, deadline=20), {"delay": (0.05, 0.3)}
    ) as rig:
        first = rig.spawn()
        await rig.working(first)
        second = rig.spawn(produce=message_refs("by-second", 10))
        assert second.process.stdout is not None
        await asyncio.to_thread(second.process.stdout.readline)  # it has accepted, and stands by
        await rig.producer.produce(held)
        await rig.until_seen(rig.seen() + 5)
        await asyncio.to_thread(hold, sqlite_database.path, 2.5)
        storms = [asyncio.create_task(asyncio.to_thread(storm, sqlite_database.path, stop)) for _ in range(3)]
        await rig.producer.produce(stormed, single=True)
        idle = await rig.idle()
        stop.set()
        counts = await asyncio.gather(*storms)
        senders = {copy.pid for copy in rig.copies()}
        codes = [await rig.stop(sender) for sender in (first, second)]
        verdict = await rig.verdict()
    report(rig, verdict, transactions=sum(counts))

    assert idle and codes == [0, 0]
    assert not verdict.violations and not verdict.duplicates and not verdict.held
    assert senders == {first.pid}
    assert sum(counts) > 20, "there was no storm: this run proves nothing (R7)"
