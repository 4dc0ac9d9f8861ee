"""A full disk, also while another takes over, and one that fails to write through (E1, F15, F16, F38)."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import asyncpg
import pytest

from tidings.model.errors import StoreFull
from tidings.model.message import Draft
from tidings.testing import PostgresCluster

from ..time_limits import until
from .conftest import Report
from .databases import PostgresDatabase, SqliteFile, make_role
from .rig import Options, Rig, drill, message_refs, scaled
from .worker import CHANNEL

pytestmark = pytest.mark.crash

FAILING = "fsync,fdatasync:error=EIO:when=2+3"  # the second, and every third after it


@pytest.fixture
def small_disk(disk: Callable[[str], Path]) -> Path:
    """A disk of a few megabytes."""
    return disk("24m")


def fill(place: Path) -> Path:
    """A file that takes all the room there is."""
    filler = place / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    return filler


async def refused(rig: Rig) -> int:
    """Accept until the disk is full; gives how many were accepted."""
    accepted = 0
    app = rig.producer._app
    with pytest.raises(StoreFull, match="is full"):
        while True:
            await app.messages.accept(Draft(CHANNEL, f"extra-{accepted}", "x" * 2000))
            accepted += 1
    assert app.store.writes.refusal == "disk full", "health must say so"
    return accepted


async def no_more(_rig: Rig) -> None:
    """Nothing else must be filled."""


async def brimming(
    rig: Rig, place: Path, report: Report, fill_tables: Callable[[Rig], Awaitable[None]] = no_more
) -> None:
    """Fill the disk while messages are on their way, and make room again: one process bears it all."""
    worker = rig.spawn()
    await rig.working(worker)
    # So many that their results do not fit into pages that are there already.
    await rig.producer.produce(message_refs("m", min(600, scaled(200, 600))))
    await rig.until_seen(20)
    filler = fill(place)
    await fill_tables(rig)
    accepted = await refused(rig)
    assert await until(lambda: worker.facts("store_error"))
    filler.unlink()
    idle = await rig.idle()
    await rig.producer.produce(message_refs("after", 20))
    idle = idle and await rig.idle()
    code = await rig.stop(worker)
    verdict = await rig.verdict()
    copies = [copy.ref for copy in rig.copies()]
    report(rig, verdict, accepted_to_the_brim=accepted)

    assert idle and code == 0, "the same process goes on"
    assert sorted(copies) == sorted({line.ref for line in rig.tried()} | {f"extra-{n}" for n in range(accepted)})
    assert set(verdict.violations) <= {"unexpected"}, "what the producer's log does not know is accounted for above"


BRIMMING = Options(slots=16, deadline=20)
SLOWLY = {"delay": (0.3, 0.6)}


async def test_a_full_disk_refuses_what_is_new_and_repeats_nothing(
    tmp_path: Path, small_disk: Path, report: Report
) -> None:
    """Filled while messages are on their way: an accept is refused, not half stored; results that cannot be
    written are kept and written when there is room, by the same process, without a hand (F15)."""
    database = SqliteFile(small_disk / "tidings.db")
    async with drill(tmp_path / "drill", database, BRIMMING, SLOWLY) as rig:
        await brimming(rig, small_disk, report)


@pytest.mark.postgres
async def test_a_full_disk_under_postgresql_is_borne_in_the_same_way(
    tmp_path: Path, cluster: PostgresCluster, report: Report
) -> None:
    """The database's files are on a disk of their own, which is full: no accept is half stored, no result is
    lost, nothing is repeated (F15)."""
    await make_role(cluster)
    database = PostgresDatabase(cluster, "brim")
    with small_tablespace(cluster.home.stat().st_uid) as place:
        for command in (f"create tablespace small location '{place}'", "alter database brim set tablespace small"):
            await administer(cluster, command)
        try:
            async with drill(tmp_path / "drill", database, BRIMMING, SLOWLY) as rig:
                await brimming(rig, place, report, fill_history)
        finally:
            cluster.drop_database("brim")
            await administer(cluster, "drop tablespace small")


async def fill_history(rig: Rig) -> None:
    """Use up pages that PostgreSQL added ahead: rows of an insert that fails stay in them until a vacuum."""
    with pytest.raises(asyncpg.DiskFullError):
        await rig.database.rows(
            "insert into {0}history (task, origin, state, attempt, at)"
            " select 0, 'pending', 'processing', 1, (select max(at) from {0}history)"
            " from generate_series(1, 20000)"
        )


async def administer(cluster: PostgresCluster, command: str) -> None:
    """One statement of the server's owner."""
    connection = await asyncpg.connect(cluster.dsn(), timeout=10)
    try:
        await connection.execute(command)
    finally:
        await connection.close()


@contextlib.contextmanager
def small_tablespace(owner: int) -> Iterator[Path]:
    """A disk of a few megabytes that belongs to the server."""
    with tempfile.TemporaryDirectory(prefix="tidings-small-") as folder:
        Path(folder).chmod(0o755)  # whoever the server runs as must be able to pass through
        place = Path(folder) / "disk"
        place.mkdir()
        options = f"size=40m,uid={owner},mode=700"
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("only root can make a small disk")
        try:
            yield place
        finally:
            subprocess.run(["umount", "--lazy", place], check=True)


async def test_a_disk_that_is_full_while_another_takes_over_loses_nothing(
    tmp_path: Path, small_disk: Path, report: Report
) -> None:
    """A worker is killed with messages under way, and the disk is full when the next one starts: it waits for
    room, by itself, and then takes over as if there had been room all the time (F38)."""
    database = SqliteFile(small_disk / "tidings.db")
    async with drill(tmp_path / "drill", database, Options(slots=16), SLOWLY) as rig:
        first = rig.spawn()
        await rig.working(first)
        await rig.producer.produce(message_refs("m", scaled(60, 600)))
        await rig.until_seen(20)
        await rig.kill(first)
        filler = fill(small_disk)
        accepted = await refused(rig)
        second = rig.spawn()
        met = await until(lambda: second.facts("store_error"))
        filler.unlink()
        idle = await rig.idle()
        code = await rig.stop(second)
        verdict = await rig.verdict()
    report(rig, verdict, accepted_to_the_brim=accepted)

    assert met, "it never met the full disk: this run proves nothing (R7)"
    assert idle and code == 0, "the same process goes on"
    assert set(verdict.violations) <= ({"unexpected"} if accepted else set())
    assert {line.ref for line in rig.tried()} <= {copy.ref for copy in rig.copies()}


def spoil(pid: int, log: Path) -> subprocess.Popen[bytes]:
    """Make a process's disk fail now and then; ends with the process."""
    words = ["-f", "-qq", "-e", "trace=fsync,fdatasync", "-e", f"inject={FAILING}", "-o", str(log)]
    return subprocess.Popen(["strace", *words, "-p", str(pid)], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)


def failures(log: Path) -> int:
    """How often it has failed."""
    return log.read_bytes().count(b"EIO") if log.exists() else 0


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed: apt install strace")
async def test_what_could_not_be_written_through_is_never_acknowledged(
    tmp_path: Path, sqlite_database: SqliteFile, report: Report
) -> None:
    """fsync fails now and then while a process accepts and works, and it dies in the end: whatever it
    acknowledged is there, and arrives (F16)."""
    async with drill(tmp_path / "drill", sqlite_database, Options(lease=1, beat=0.2)) as rig:
        shaky = rig.spawn(produce=message_refs("m", scaled(300, 3000)))
        assert await rig.until_acknowledged(20)
        log = tmp_path / "strace.log"
        tracer = spoil(shaky.pid, log)
        await until(lambda: tracer.poll() is not None or failures(log) >= 3, moved=lambda: failures(log))
        await rig.kill(shaky)
        _, complained = await asyncio.to_thread(tracer.communicate)
        if b"ptrace" in complained or b"attach" in complained:
            pytest.skip(f"processes cannot be traced here: {complained.decode().strip()}")
        acked = {line.ref for line in rig.tried() if line.acked is not None}
        unanswered = [line.ref for line in rig.tried() if line.acked is None]
        await rig.producer.produce(unanswered, single=True)
        last = rig.spawn()
        idle = await rig.idle()
        assert await rig.stop(last) == 0
        verdict = await rig.verdict()
    report(rig, verdict, acknowledged=len(acked), unanswered=len(unanswered))

    assert failures(log) >= 3, "no write failed: this run proves nothing (R7)"
    assert idle and not verdict.violations
    assert verdict.delivered == len(rig.tried())
