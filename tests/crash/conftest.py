"""Databases for the crash drills, and the table of what they counted."""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tidings.drill.checker import DrillVerdict
from tidings.testing import PostgresCluster

from .databases import Database, PostgresDatabase, SqliteFile, make_role
from .rig import IS_FULL, Rig
from .summary import OUTCOMES, summary, verdict_counts

_numbers = itertools.count(1)
_KEY = "crash"
_SUMMARY = pytest.StashKey[dict[str, Any]]()

Note = Callable[..., None]
Report = Callable[..., None]


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[PostgresCluster]:
    """A private PostgreSQL: drills never touch a server that somebody else runs."""
    if not os.environ.get("TIDINGS_TEST_POSTGRES"):
        yield request.getfixturevalue("postgres")
        return
    if PostgresCluster.find() is None:
        pytest.skip("no PostgreSQL 14 or newer: install postgresql")
    with PostgresCluster() as running:
        yield running


@pytest.fixture
async def fresh_postgres(cluster: PostgresCluster) -> Callable[[], PostgresDatabase]:
    """Makes a database of the private server, each time it is called."""
    await make_role(cluster)
    return lambda: PostgresDatabase(cluster, f"drill_{os.getpid()}_{next(_numbers)}")


@pytest.fixture
def postgres_database(fresh_postgres: Callable[[], PostgresDatabase]) -> PostgresDatabase:
    """A fresh database of the private server."""
    return fresh_postgres()


@pytest.fixture
def sqlite_database(tmp_path: Path) -> SqliteFile:
    """A SQLite file that does not exist yet."""
    return SqliteFile(tmp_path / "tidings.db")


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> Database:
    """Each drill runs on both stores."""
    made: Database = request.getfixturevalue(f"{request.param}_database")
    return made


@pytest.fixture
def note(record_property: Callable[[str, object], None]) -> Note:
    """One row of the table at the end; it travels with the test's result."""
    return lambda **row: record_property(_KEY, json.dumps(row))


@pytest.fixture
def report(note: Note) -> Report:
    """A drill's row: every class of its verdict, and what else was counted."""

    def write(rig: Rig, verdict: DrillVerdict, **facts: Any) -> None:
        seconds = round(time.monotonic() - rig.began, 1)
        note(messages=len(rig.tried()), **verdict_counts(verdict), **facts, seconds=seconds)

    return write


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """What every drill counted: without these numbers 'nothing was lost' says nothing (R7)."""
    rows = [
        (report.nodeid.partition("::")[2], json.loads(value))
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, [])
        for name, value in getattr(report, "user_properties", ())
        if name == _KEY
    ]
    if rows:
        terminalreporter.section("crash drills")
        for drill, row in rows:
            counts = ", ".join(f"{name} {value}" for name, value in row.items() if value != 0)
            terminalreporter.write_line(f"{drill}: {counts}")
    ended = {outcome: len(terminalreporter.stats.get(outcome, ())) for outcome in OUTCOMES}
    terminalreporter.config.stash[_SUMMARY] = summary(ended, [row for _, row in rows])


def pytest_unconfigure(config: pytest.Config) -> None:
    """The last line of `make crash` and `make soak` is one JSON object."""
    if IS_FULL and _SUMMARY in config.stash:
        print(json.dumps(config.stash[_SUMMARY]))
