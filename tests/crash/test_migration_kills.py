"""Migrations killed with -9 while a target loses 2 % of its answers: its content is exactly as expected (C8).

Companies are upserts, notes are creates without a key, three of them always the same: a note that was written
and not known to be is found by reading, and never written twice.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tidings import app as engine
from tidings.config import Settings
from tidings.migration.job_file import read_job
from tidings.migration.jobs import JobState

from ..time_limits import Limit
from .conftest import Note
from .databases import Database, PostgresDatabase, SqliteFile
from .rig import ROOT, STANDSTILL, Options, fork, scaled

pytestmark = [pytest.mark.crash, pytest.mark.postgres]

NOTES_OF_ONE = 9
POINTS = ("started", "sent", "settled")
_WRITTEN = "select count(*) from {0}crosswalk"


@contextmanager
def sandbox() -> Iterator[str]:
    """The pretend Attio in a process of its own; gives its address."""
    command = [sys.executable, "-m", "tidings.sandbox", "--port", "0", "--mail-port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        try:
            said = process.stdout.readline().decode()
            found = re.search(r"(http://\S+?)/?\s*$", said)
            assert found is not None, said
            yield found[1]
        finally:
            process.kill()


def ask(url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url, data, {"content-type": "application/json"}), timeout=60) as answer:
        return json.load(answer)


class Move:
    """One drill: a source in files, a job, and workers that come and go."""

    def __init__(self, folder: Path, database: Database, url: str, companies: int) -> None:
        self.folder, self.database, self._url = folder, database, url
        self.companies = [{"id": str(n), "name": f"Company {n}", "domain": f"c{n}.org"} for n in range(companies)]
        self.notes = [
            {"id": f"{n}-{i}", "company": str(n), "title": f"Note {i // 3}", "text": f"What was said to {n}"}
            for n in range(companies)
            for i in range(NOTES_OF_ONE)
        ]
        self.kills = 0
        self._processes: list[subprocess.Popen[bytes]] = []

    async def begin(self) -> str:
        """Create the job and start it; gives its id."""
        source = self.folder / "source"
        source.mkdir(parents=True)
        for name, rows in (("companies", self.companies), ("notes", self.notes)):
            (source / f"{name}.ndjson").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        ask(f"{self._url}/sandbox/attio", {"writes_per_second": 1_000_000, "reads_per_second": 1_000_000})
        ask(f"{self._url}/sandbox/faults", {"kind": "lost", "channel": "attio", "rate": 0.02})
        os.environ["DRILL_ATTIO_KEY"] = "drill"
        app = engine.build(Settings(database=self.database.url, channels={}, sandbox=False))
        await app.open()
        job = await app.migrations.create(read_job(self._definition(source), is_local=True), by="drill")
        await app.migrations.run(job.id, by="drill")
        await app.close()
        return job.id

    def _definition(self, source: Path) -> dict[str, Any]:
        parent = {"path": "company", "reference": "companies"}
        constant = {"constant": "companies"}
        attio = {"url": f"{self._url}/attio", "deadline": "500ms"}
        fast = {"writes_per_second": 1e6, "reads_per_second": 1e6}
        notes = {"parent_object": constant, "parent_record_id": parent, "title": "title", "content": "text"}
        return {
            "name": "drill",
            "source": {"kind": "ndjson", "path": str(source)},
            "target": {"kind": "attio", "key": "env:DRILL_ATTIO_KEY", **attio, **fast},
            "types": {
                "companies": {"key": "domain", "fields": {"name": "name", "domains": {"path": "domain", "many": True}}},
                "notes": {"fields": notes, "batch_size": scaled(150, 2000)},
            },
            "retry": {"initial_delay": "200ms"},
        }

    def spawn(self, crash_at: str = "") -> subprocess.Popen[bytes]:
        """A worker."""
        options = {
            **asdict(Options()),
            "database": self.database.worker_url,
            "port": 1,
            "lease": 1.0,
            "heartbeat": 0.25,
        }
        environment = {**os.environ, "TIDINGS_CRASH_AT": crash_at}
        process = fork("tests.crash.worker", options, self.folder / "worker.jsonl", env=environment)
        self._processes.append(process)
        return process

    async def written(self) -> int:
        """How many records the crosswalk knows."""
        return int((await self.database.rows(_WRITTEN))[0][0])

    async def strike(self, chance: random.Random, share: float) -> None:
        """Kill a worker: at a crash point, or when some more has been written."""
        goal = min(len(self.companies) + len(self.notes), await self.written() + round(share * chance.random()))
        point = chance.choice(POINTS) if chance.random() < 0.6 else ""
        process = self.spawn(f"{point}:{chance.randint(2, 6)}" if point else "")
        limit, before = Limit(30), await self.written()
        while process.poll() is None and not limit.is_over():
            written = await self.written()
            if not point and written >= goal:
                break
            if written > before:
                before = written
                limit.restart()
            await asyncio.sleep(0.02)
        process.kill()
        process.wait()
        self.kills += 1

    async def finish(self, id_: str) -> JobState:
        """Let one work in peace; fails when nothing more is written."""
        process = self.spawn()
        app = engine.build(Settings(database=self.database.url, channels={}, sandbox=False))
        await app.open()
        try:
            limit, before = Limit(STANDSTILL), -1
            while (view := await app.migrations.find(id_)).state is JobState.RUNNING:
                if (written := await self.written()) != before:
                    before = written
                    limit.restart()
                assert not limit.is_over(), await app.migrations.status(id_)
                assert process.poll() is None, (self.folder / "worker.jsonl").read_text()[-2000:]
                await asyncio.sleep(0.05)
            assert view.reason is None, await app.migrations.dead(id_)
            return view.state
        finally:
            await app.close()

    def end(self) -> None:
        """End what still runs."""
        for process in self._processes:
            if process.poll() is None:
                process.kill()
            process.wait()

    def differences(self, content: Mapping[str, Any]) -> tuple[Counter[Any], Counter[Any]]:
        """What is missing in the target, and what is too much."""
        domains = {one["id"]: _plain(one["values"]["domains"]) for one in content["companies"]}
        found: Counter[Any] = Counter(("company", _plain(one["values"]["name"]), domains[one["id"]])
                        for one in content["companies"])  # fmt: skip
        found.update(
            ("note", domains[one["parent_record_id"]], one["title"], one["content_plaintext"])
            for one in content["notes"]
        )
        wanted: Counter[Any] = Counter(("company", one["name"], one["domain"]) for one in self.companies)
        wanted.update(("note", f"c{one['company']}.org", one["title"], one["text"]) for one in self.notes)
        return wanted - found, found - wanted


def _plain(values: Any) -> str:
    one = values[0] if isinstance(values, list) else values
    return str(one.get("domain") or one.get("value") or one) if isinstance(one, dict) else str(one)


async def drill(folder: Path, database: Database, kills: int, companies: int, note: Note) -> None:
    """Strike, then finish, then compare everything."""
    chance = random.Random(f"move {database.url[:8]}")
    with sandbox() as url:
        move = Move(folder, database, url, companies)
        try:
            id_ = await move.begin()
            began = time.monotonic()
            total = len(move.companies) + len(move.notes)
            for _ in range(kills):
                await move.strike(chance, 2 * total / (kills + 2))
            state = await move.finish(id_)
            content = await asyncio.to_thread(ask, f"{url}/sandbox/attio")
        finally:
            move.end()
    missing, doubled = move.differences(content["content"])
    note(
        store=database.url.partition(":")[0], records=total, kills=move.kills,
        missing=missing.total(), doubled=doubled.total(), seconds=round(time.monotonic() - began, 1),
    )  # fmt: skip
    assert state is JobState.COMPLETED
    assert (missing, doubled) == (Counter(), Counter())


async def test_a_migration_that_is_killed_again_and_again_writes_each_record_once(
    tmp_path: Path, sqlite_database: SqliteFile, fresh_postgres: Callable[[], PostgresDatabase], note: Note
) -> None:
    """Both stores side by side; at full scale 20 kills during 20,000 records each."""
    kills, companies = scaled(2, 20), scaled(30, 2000)
    await asyncio.gather(
        drill(tmp_path / "lite", sqlite_database, kills, companies, note),
        drill(tmp_path / "pg", fresh_postgres(), kills, companies, note),
    )
