"""Planted bugs: the judge must catch every one, or the drills prove nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tidings.drill.checker import DrillVerdict

from .databases import PostgresDatabase, SqliteFile
from .rig import Options, Rig, drill, message_refs, portions

pytestmark = pytest.mark.crash


async def killed(rig: Rig, plant: str, *, patience: float = 20) -> DrillVerdict:
    """Three workers with a bug, killed while they send; then one that may finish."""
    parts = portions(message_refs("m", 160), 4)
    for refs in parts[:3]:
        before = rig.seen()
        producing = asyncio.create_task(rig.producer.produce(refs))
        sender = rig.spawn(plant=plant)
        await rig.until_seen(before + 20)
        await rig.kill(sender)
        await producing
    rig.spawn(plant=plant)
    await rig.producer.produce(parts[3])
    await rig.idle(within=patience)
    return await rig.verdict()


def check_record(ref: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The output explains a violation: the faults, every copy of the message and its history."""
    printed = capsys.readouterr().out.splitlines()
    record = [line for line in printed if line.startswith(f"{ref} ")]

    assert any(line.startswith("InjectedFault(") for line in printed)
    assert sum("arrived: " in line for line in record) >= 2
    assert any("history: " in line and "'done'" in line for line in record)


async def test_a_worker_that_writes_done_before_it_sends_is_caught(tmp_path: Path, sqlite_database: SqliteFile) -> None:
    """Messages are lost."""
    async with drill(tmp_path / "drill", sqlite_database, Options(lease=1, beat=0.2)) as rig:
        assert (await killed(rig, "done_before_send")).lost


@pytest.mark.postgres
async def test_a_worker_that_sends_without_a_start_mark_is_caught(
    tmp_path: Path, postgres_database: PostgresDatabase, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a channel that holds there are duplicates, and the engine knows nothing of them."""
    async with drill(tmp_path / "drill", postgres_database, Options(on_unknown="hold", lease=1, beat=0.2)) as rig:
        verdict = await killed(rig, "no_start_mark")

    assert verdict.duplicates and verdict.unflagged
    check_record(verdict.unflagged[0], capsys)


async def test_a_worker_that_resends_in_silence_is_caught(
    tmp_path: Path, sqlite_database: SqliteFile, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each duplicate has its witness, but no flag."""
    async with drill(tmp_path / "drill", sqlite_database, Options(lease=1, beat=0.2)) as rig:
        verdict = await killed(rig, "no_flag")

    assert verdict.unflagged and not verdict.unexplained
    check_record(verdict.unflagged[0], capsys)


async def test_a_worker_that_renames_its_messages_is_caught(tmp_path: Path, sqlite_database: SqliteFile) -> None:
    """A receiver could not remove these duplicates."""
    async with drill(tmp_path / "drill", sqlite_database) as rig:
        assert (await killed(rig, "fresh_id")).unexpected


async def test_a_worker_that_never_reaps_is_caught(tmp_path: Path, sqlite_database: SqliteFile) -> None:
    """What the dead held stays at work for ever."""
    async with drill(tmp_path / "drill", sqlite_database) as rig:
        assert (await killed(rig, "no_reaper", patience=4)).stuck


@pytest.mark.postgres
async def test_workers_that_ignore_leases_are_caught(tmp_path: Path, postgres_database: PostgresDatabase) -> None:
    """Without any fault they take each other's work and send it twice, both at once."""
    slow = {"delay": (3.0, 5.0)}  # long enough for the other to come meanwhile, on a busy machine, too
    async with drill(tmp_path / "drill", postgres_database, Options(slots=64, deadline=8), slow) as rig:
        rig.spawn(plant="no_lease")
        rig.spawn(plant="no_lease")
        await rig.producer.produce(message_refs("m", 100))
        await rig.until_seen(200, within=30)
        verdict = await rig.verdict()

    assert verdict.unexplained and verdict.overlap


async def test_an_accept_answered_before_its_commit_is_caught(tmp_path: Path, sqlite_database: SqliteFile) -> None:
    """Its process dies, and what was acknowledged is not there."""
    async with drill(tmp_path / "drill", sqlite_database) as rig:
        hasty = rig.spawn(plant="answer_before_commit", produce=message_refs("m", 2000))
        assert await rig.until_acknowledged(100)
        await rig.kill(hasty)
        rig.spawn()
        await rig.idle(within=20)
        assert (await rig.verdict()).lost
