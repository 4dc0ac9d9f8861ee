"""Databases for the crash drills, and the table of what they counted."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tidings.testing import Cluster

from .books import Database, PostgresDatabase, SqliteFile, make_role

_numbers = itertools.count(1)
_KEY = "crash"

Report = Callable[..., None]


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A private PostgreSQL: drills never touch a server that somebody else runs."""
    if not os.environ.get("TIDINGS_TEST_POSTGRES"):
        yield request.getfixturevalue("postgres")
        return
    if Cluster.find() is None:
        pytest.skip("no PostgreSQL 14 or newer: install postgresql")
    with Cluster() as running:
        yield running


@pytest.fixture
async def postgres_database(cluster: Cluster) -> PostgresDatabase:
    """A fresh database of the private server."""
    await make_role(cluster)
    return PostgresDatabase(cluster, f"drill_{os.getpid()}_{next(_numbers)}")


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
def report(record_property: Callable[[str, object], None]) -> Report:
    """One row of the table at the end; it travels with the test's result."""
    return lambda **row: record_property(_KEY, json.dumps(row))


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
            terminalreporter.write_line(
                f"{drill}: " + ", ".join(f"{name} {value}" for name, value in row.items())
            )
