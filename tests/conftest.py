"""Databases for tests: a SQLite file, or a fresh database on a PostgreSQL server that this run started.

Each pytest-xdist worker has a server of its own. `TIDINGS_TEST_POSTGRES` names an existing server instead (a
URL with the right to create databases). Without PostgreSQL those tests are skipped, and the reason counted.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import pytest

from tidings.testing import Cluster, Rabbit

_MEMORY_DISK = Path("/dev/shm")
_ROOM_NEEDED = 2 << 30
_numbers = itertools.count(1)

os.environ["TIDINGS_FORBID_MODEL"] = "1"  # no test calls a real language model


class Server(Protocol):
    """What a test needs of a PostgreSQL server; `Cluster` is one."""

    def create_database(self, name: str) -> str: ...

    def drop_database(self, name: str) -> None: ...


class ExistingServer:
    """A server that somebody else runs, reached by URL."""

    def __init__(self, url: str) -> None:
        self._url = url

    def create_database(self, name: str) -> str:
        self._run(f'CREATE DATABASE "{name}"')
        return urlsplit(self._url)._replace(path=f"/{name}").geturl()

    def drop_database(self, name: str) -> None:
        self._run(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def _run(self, statement: str) -> None:
        """In a thread of its own, so that no event loop of the test is in the way."""
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, self._execute(statement)).result()

    async def _execute(self, statement: str) -> None:
        import asyncpg

        connection = await asyncpg.connect(self._url)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server, shared by the tests of one worker; most tests want `postgres_url`."""
    existing = os.environ.get("TIDINGS_TEST_POSTGRES")
    if existing:
        yield ExistingServer(existing)
        return
    if Cluster.find() is None:
        pytest.skip("no PostgreSQL 14 or newer: install postgresql, or set TIDINGS_TEST_POSTGRES to a server")
    with tempfile.TemporaryDirectory(prefix="tidings-pg-", dir=_roomy_folder()) as folder:
        # Root's server runs as nobody, who must be able to pass through.
        Path(folder).chmod(0o755)
        with Cluster(Path(folder) / "data", settings={"max_wal_size": "128MB"}) as cluster:
            yield cluster


@pytest.fixture(scope="session")
def rabbit() -> Iterator[Rabbit]:
    """A RabbitMQ of this run's own; those who use it are in the group `rabbitmq`, so that one is started."""
    if Rabbit.find() is None:
        pytest.skip("no RabbitMQ: install rabbitmq-server")
    with (
        tempfile.TemporaryDirectory(prefix="tidings-mq-", dir=_roomy_folder()) as folder,
        Rabbit(Path(folder) / "data") as broker,
    ):
        yield broker


@pytest.fixture(scope="session")
def rabbit_url(request: pytest.FixtureRequest) -> str:
    """Its URL; `TIDINGS_TEST_RABBITMQ` names a broker that runs already, and whose queues may be deleted."""
    existing = os.environ.get("TIDINGS_TEST_RABBITMQ")
    if existing:
        return existing
    broker: Rabbit = request.getfixturevalue("rabbit")
    return broker.url


@pytest.fixture
def postgres_url(postgres: Server) -> Iterator[str]:
    """The URL of an empty database, removed after the test."""
    name = f"t{os.getpid()}_{next(_numbers)}"
    yield postgres.create_database(name)
    postgres.drop_database(name)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The URL of a SQLite file that does not exist yet."""
    return f"sqlite:///{tmp_path}/tidings.db"


def _roomy_folder() -> Path | None:
    """Memory, if there is plenty: fsync stays on, as in production, yet costs nothing."""
    has_room = _MEMORY_DISK.is_dir() and os.access(_MEMORY_DISK, os.W_OK)
    return _MEMORY_DISK if has_room and shutil.disk_usage(_MEMORY_DISK).free > _ROOM_NEEDED else None
