"""`tidings drill`: real workers killed, on the user's database and yet not in it (A12, B17)."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import tempfile
from pathlib import Path

import asyncpg
import pytest

from tidings.cli import drill as command
from tidings.config import Settings, load
from tidings.drill.checker import EngineRecord, ProducerEntry, check_logs
from tidings.drill.report import DrillEvidence, DrillReport, build_report
from tidings.drill.runner import DrillProgress
from tidings.drill.runner import run as exercise
from tidings.drill.scratch import remove_leftovers, scratch_space
from tidings.drill.workload import DrillOptions
from tidings.model.errors import Conflict
from tidings.store import scratch_schemas as schemas

from .program import COMMAND, environment, run, until

pytestmark = pytest.mark.crash

QUICK = {"TIDINGS_NODE_TIMEOUT": "1s", "TIDINGS_HEARTBEAT_INTERVAL": "200ms"}
PATIENCE = 240  # seconds; reached only when something is broken
_SCHEMAS = "select nspname from pg_namespace where nspname not like 'pg\\_%' order by 1"


@pytest.fixture
def folder_for_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One of the test's own, so that it removes nothing that others left behind."""
    made = tmp_path / "temporary"
    made.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(made))
    return made


def drilling(folder: Path, *words: str) -> subprocess.Popen[str]:
    """A drill as a user starts one: Ctrl-C reaches it, also where whoever runs the tests is deaf to it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # not inherited, as deafness is
    try:
        return subprocess.Popen(
            [*COMMAND, "drill", *words], cwd=folder, env=environment(QUICK), text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
    finally:
        signal.signal(signal.SIGINT, before)


def left_in(folder: Path) -> list[Path]:
    """What drills have in a folder."""
    return list(folder.glob("tidings-drill-*"))


def living_in(folder: Path) -> list[str]:
    """The processes whose working directory this is."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(process / "cwd") == str(folder):
                found.append(process.name)
        except OSError:
            continue
    return found


def test_a_drill_on_a_file_counts_and_leaves_the_users_database_alone(tmp_path: Path) -> None:
    """Nothing lost, nothing doubled in silence, the last line is one object, and the scratch is gone."""
    own = tmp_path / "tidings.db"
    sent = run("send", "--channel", "phone", "--to", "ada", "--text", "mine", "-d", f"sqlite:///{own}",
               folder=tmp_path)  # fmt: skip
    assert sent.returncode == 0, sent.stderr
    before = own.read_bytes()

    drill = drilling(tmp_path, "-d", f"sqlite:///{own}", "--messages", "100", "--kills", "2",
                     "--workers", "2", "--seconds", "1", "--seed", "7", "--json")  # fmt: skip
    said, complained = drill.communicate(timeout=PATIENCE)

    assert drill.returncode == 0, said + complained
    told = json.loads(said.splitlines()[-1])
    assert told["ok"] and told["accepted"] == told["delivered"] == 100
    assert (told["lost"], told["stuck"], told["duplicated"]["silent"]) == (0, 0, 0)
    assert told["kills"]["workers"] == 2 and told["seed"] == 7
    assert own.read_bytes() == before
    assert not left_in(tmp_path)


@pytest.mark.postgres
@pytest.mark.usefixtures("folder_for_temporary_files")
async def test_a_drill_on_postgresql_works_in_a_schema_of_its_own(postgres_url: str, tmp_path: Path) -> None:
    """The schema is there only while it runs; with `hold` nothing is doubled at all, and what is in doubt is
    held (F4, F5)."""
    chosen = load(environ=QUICK, folder=tmp_path, flags={"database": postgres_url})
    before = await schemas_of(postgres_url)
    during: set[str] = set()
    progress: list[DrillProgress] = []
    course = DrillOptions(messages=100, kills=1, workers=2, seconds=1.0, on_unknown="hold", seed=3)

    async with scratch_space(chosen, keep=False) as place:
        found = await exercise(course, chosen, place, progress.append)
        during.update(await schemas_of(postgres_url))

    assert found.is_clean, found.violations
    assert found.accepted == 100 and not found.copies
    assert found.delivered + found.held >= 100
    assert progress[-1].accepted == 100 and progress[-1].killed == 1
    assert during - set(before) == {f"tidings_drill_{place.id}"}
    assert await schemas_of(postgres_url) == before
    assert not place.folder.exists()


def test_a_drill_that_is_interrupted_cleans_up(tmp_path: Path) -> None:
    """Ctrl-C ends its processes and removes its scratch, with the usual exit code."""
    drill = drilling(tmp_path, "-d", f"sqlite:///{tmp_path}/tidings.db")
    folder = until(lambda: next(iter(left_in(tmp_path)), None), "the drill has a folder")
    until((folder / "receiver.log").exists, "its receiver is being started")

    drill.send_signal(signal.SIGINT)
    drill.communicate(timeout=PATIENCE)

    assert drill.returncode == 130
    assert not left_in(tmp_path) and not living_in(folder)


@pytest.mark.usefixtures("folder_for_temporary_files")
def test_what_a_killed_drill_left_behind_is_removed_on_request(tmp_path: Path) -> None:
    """Its processes end with it; `--clean` removes the rest, but never that of a drill that still runs."""
    chosen = Settings(database=f"sqlite:///{tmp_path}/tidings.db")
    drill = drilling(tmp_path, "-d", chosen.database, "--seconds", "600")
    folder = until(lambda: next(iter(left_in(tmp_path)), None), "the drill has a folder")
    until((folder / "worker-0.jsonl").exists, "a worker is being started")
    assert asyncio.run(remove_leftovers(chosen)) == []

    drill.kill()
    drill.communicate(timeout=PATIENCE)

    until(lambda: not living_in(folder), "its processes have ended by themselves")
    assert left_in(tmp_path) == [folder]
    assert asyncio.run(remove_leftovers(chosen)) == [str(folder)]
    assert asyncio.run(remove_leftovers(chosen)) == [] and not left_in(tmp_path)


@pytest.mark.usefixtures("folder_for_temporary_files")
async def test_a_drill_that_finds_something_says_what_to_look_at_and_keeps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code is 1, the id is named, and the evidence stays until it is cleaned up."""
    chosen = Settings(database=f"sqlite:///{tmp_path}/tidings.db")
    course = DrillOptions(messages=1, kills=1, workers=1, seconds=1.0, on_unknown="resend", seed=7)
    books = {"drill-000000": EngineRecord("done", False, id="0190-a1")}
    tried = [ProducerEntry("drill-000000", "x", 1.0, 1.0, 1.0)]
    evidence = DrillEvidence(tried, [], [], books, check_logs(tried, [], [], books, deadline=5))

    async def lossy(*_given: object) -> DrillReport:
        return build_report(evidence, course, lease=10, seconds=1)

    monkeypatch.setattr("tidings.drill.runner.run", lossy)

    assert await command._drill(chosen, course, keep=False, as_json=False) == 1

    said = capsys.readouterr().out
    assert "lost: see drill-000000 (0190-a1)" in said
    assert "no message was lost" not in said
    [kept] = left_in(tmp_path)
    assert str(kept) in said
    assert await remove_leftovers(chosen) == [str(kept)]


@pytest.mark.postgres
async def test_a_schema_that_is_there_is_refused_and_one_in_use_is_not_removed(postgres_url: str) -> None:
    """Only what no drill holds any more is taken for left behind."""
    async with schemas.scratch_schema(postgres_url, "tidings_drill_x") as url:
        assert "schema=tidings_drill_x" in url
        with pytest.raises(Conflict, match="in use by another drill"):
            async with schemas.scratch_schema(postgres_url, "tidings_drill_x"):
                pass
        assert await schemas.remove_stale_schemas(postgres_url) == []

    with pytest.raises(Conflict, match=r"already exists.*--clean"):
        async with schemas.scratch_schema(postgres_url, "tidings_drill_x"):
            pass
    assert await schemas.remove_stale_schemas(postgres_url) == ["tidings_drill_x"]
    assert "tidings" in await schemas_of(postgres_url)


def test_invalid_drill_options_are_rejected(tmp_path: Path) -> None:
    """Before anything is started."""
    for words, about in ((("--messages", "0"), "--messages"), (("--on-unknown", "shrug"), "--on-unknown")):
        done = run("drill", *words, folder=tmp_path)
        assert done.returncode == 2 and about in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
    assert not left_in(tmp_path)


async def schemas_of(url: str) -> list[str]:
    """The schemas of a database."""
    connection = await asyncpg.connect(url)
    try:
        return [row[0] for row in await connection.fetch(_SCHEMAS)]
    finally:
        await connection.close()
