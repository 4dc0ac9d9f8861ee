"""A power cut under SQLite: whatever was not written through is gone (E1, F14).

A kill keeps what the system has in memory and shows nothing of the kind. Here the writes of a real process
are traced, and the disk is rebuilt as it would be at many moments.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest

from tidings.drill.harness import run_receiver
from tidings.drill.json_log import LogTail, read_log

from ..time_limits import until
from . import blackout
from .conftest import Note
from .rig import ROOT, Options, message_refs, scaled

pytestmark = [
    pytest.mark.crash,
    pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed: apt install strace"),
]


def start(folder: Path, port: int, refs: list[str], **more: Any) -> subprocess.Popen[bytes]:
    """A worker that accepts these and sends them, with its writes traced."""
    options = {
        **asdict(Options()),
        "database": f"sqlite:///{folder}/tidings.db",
        "port": port,
        "produce": refs,
        "producer_log": str(folder / "producer.jsonl"),
        **more,
    }
    command = [sys.executable, "-m", "tests.crash.worker", json.dumps(options)]
    with (folder / "worker.jsonl").open("wb") as errors:
        return subprocess.Popen(
            blackout.traced(command, folder / "trace"),
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
        )  # fmt: skip


def kill(tracer: subprocess.Popen[bytes]) -> None:
    """End the traced process; its tracer ends with it."""
    children = Path(f"/proc/{tracer.pid}/task/{tracer.pid}/children").read_text()
    for child in map(int, children.split()):
        os.kill(child, signal.SIGKILL)
    tracer.communicate()


def acknowledged(log: Path) -> dict[str, float]:
    """When each message was acknowledged."""
    return {line["ref"]: line["acked"] for line in read_log(log) if "acked" in line} if log.exists() else {}


def found_in(path: Path) -> tuple[str, set[str]]:
    """Whether the file is whole, and the messages in it."""
    connection = apsw.Connection(str(path))
    try:
        health = next(iter(connection.execute("pragma integrity_check")))[0]
        has_tables = list(connection.execute("select 1 from sqlite_schema where name = 'messages'"))
        rows = connection.execute("select recipient from messages") if has_tables else ()
        return health, {row[0] for row in rows}
    finally:
        connection.close()


class Blackouts(NamedTuple):
    """What many power cuts of one run did."""

    acknowledged: int
    cuts: int
    kept: int
    lost: int
    damaged: int


async def blackouts(folder: Path, **options: Any) -> Blackouts:
    """Trace a run, and look at the disk as it would be at every moment between two syncs."""
    refs, log = message_refs("m", min(3000, scaled(200, 3000))), folder / "producer.jsonl"
    with run_receiver(folder / "receiver.jsonl", {}) as port:
        tracer = start(folder, port, refs, **options)
        acked = LogTail(log, b'"acked"')
        log.touch()
        await until(lambda: tracer.poll() is not None or acked.count() == len(refs), moved=acked.count)
        if tracer.poll() is not None and "ptrace" in (folder / "worker.jsonl").read_text():
            pytest.skip("processes cannot be traced here")
        await asyncio.to_thread(kill, tracer)
    told, chance = acknowledged(log), random.Random("power")
    *every, last = blackout.cuts(folder / "trace", folder / "tidings.db")
    chosen = [*(every if len(every) < 40 else chance.sample(every, 40)), last]
    seen = [look(cut, folder / "disk", told, chance if i % 2 else None) for i, cut in enumerate(chosen)]
    healthy, kept, lost = zip(*seen, strict=True)
    return Blackouts(len(told), len(chosen), sum(kept), sum(lost), healthy.count(False))


def look(
    cut: blackout.Cut, disk: Path, told: Mapping[str, float], chance: random.Random | None
) -> tuple[bool, int, int]:
    """Whether the file is whole, and how many that were acknowledged before the cut are there and are not."""
    due = {ref for ref, at in told.items() if at < cut.at}
    blackout.restore(cut, disk, chance)
    health, found = found_in(disk / "tidings.db")
    return health == "ok", len(due & found), len(due - found)


async def test_what_was_acknowledged_is_on_the_disk_whenever_the_power_goes(tmp_path: Path, note: Note) -> None:
    """With none or some of the writes since the last sync: the file is whole, and every message is in it
    that somebody was told yes for (F14)."""
    found = await blackouts(tmp_path)
    note(messages=found.acknowledged, cuts=found.cuts, kept=found.kept)

    assert (found.lost, found.damaged) == (0, 0)
    assert found.cuts > 3 and found.kept > found.acknowledged, "no cut hurt: this run proves nothing (R7)"


async def test_a_store_that_does_not_write_through_is_caught(tmp_path: Path) -> None:
    """The usual advice for a quick SQLite (`synchronous=NORMAL`) loses what was acknowledged."""
    assert (await blackouts(tmp_path, plant="no_sync")).lost
