"""One worker is cut off from the database that the others still reach (B17, F10, F11)."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidings.drill.ledger import Fault, Kind
from tidings.drill.rig import names
from tidings.testing import Cluster

from .books import PostgresDatabase
from .conftest import Report
from .rig import ROOT, Options, drill

pytestmark = [pytest.mark.crash, pytest.mark.postgres]


@pytest.fixture
def proxy(cluster: Cluster) -> Iterator[subprocess.Popen[bytes]]:
    """A process that stands between one worker and the server."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.crash.proxy", str(cluster.home / ".s.PGSQL.5432")],
        cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
    )  # fmt: skip
    yield process
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


@pytest.mark.parametrize("on_unknown", ["resend", "hold"])
async def test_a_worker_that_is_cut_off_while_it_sends_loses_nothing(
    tmp_path: Path,
    postgres_database: PostgresDatabase,
    proxy: subprocess.Popen[bytes],
    on_unknown: str,
    report: Report,
) -> None:
    """Its lease runs out while its requests are under way, and it comes back with their results.

    With `hold` the others wait for the deadline of what had started, so its results count and nobody sends
    twice. With `resend` nothing is marked, so the others send again when the lease is over, perhaps while the
    first request is still under way: each such copy has its witness and its flag.
    """
    assert proxy.stdout is not None
    port = int(proxy.stdout.readline())
    through = postgres_database.worker_url.replace("@/", f"@127.0.0.1:{port}/").partition("?")[0]
    options = Options(on_unknown=on_unknown, lease=1.5, beat=0.3, deadline=7)
    async with drill(tmp_path / "drill", postgres_database, options, {"delay": (4.7, 5)}) as rig:
        cut_off = rig.spawn(database=through)
        await rig.working(cut_off)
        await rig.producer.produce(names("m", 16))
        await rig.until_seen(16)
        other = rig.spawn()
        await rig.working(other)
        begin = time.time()
        proxy.send_signal(signal.SIGSTOP)
        await asyncio.sleep(4)
        rig.note(Fault(Kind.CUT, cut_off.pid, begin, time.time(), "black hole"))
        proxy.send_signal(signal.SIGCONT)
        idle = await rig.idle(within=40)
        stolen = other.facts("node_lost")
        codes = [await rig.stop(sender) for sender in (cut_off, other)]
        verdict = await rig.verdict()
    report(rig, verdict, lease_stolen=stolen)

    assert idle and codes == [0, 0]
    assert stolen, "the lease never ran out: this run proves nothing (R7)"
    if on_unknown == "hold":
        assert not verdict.crimes and not verdict.duplicates and not verdict.held
    else:
        assert set(verdict.crimes) <= {"overlap"}
