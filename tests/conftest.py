"""Databases for tests: a SQLite file, or a fresh database on a PostgreSQL server that this run started.

Each pytest-xdist worker has a server of its own. `TIDINGS_TEST_POSTGRES` names an existing server instead (a
URL with the right to create databases). Without PostgreSQL those tests are skipped, and the reason counted.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Coroutine, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import hypothesis
import pytest

from tidings.store.port import Store
from tidings.store.postgres import PostgresStore
from tidings.store.sqlite import SqliteStore
from tidings.testing import PostgresCluster, RabbitBroker

from .groups import keep_groups
from .time_limits import pytest_timeout_set_timer  # noqa: F401 (a hook)

_MEMORY_DISK = Path("/dev/shm")
_ROOM_NEEDED = 2 << 30
_numbers = itertools.count(1)

# How long an example takes says nothing on a busy machine. `make quick` runs fewer examples.
_any_speed = hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.register_profile("default", _any_speed)
hypothesis.settings.register_profile("quick", _any_speed, max_examples=20)
hypothesis.settings.load_profile("default")

os.environ["TIDINGS_LOCAL_MODEL_ONLY"] = "1"  # no test calls a real language model


def pytest_configure() -> None:
    """Temporary folders in memory, too: a SQLite file of a test is synced as always, and nobody waits."""
    folder = _roomy_folder()
    if folder is not None:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(folder))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep a million objects that stay, modules and tests, out of the garbage collector's way."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None, object, object]:
    """Mark each test with the servers that it needs, before marks select tests; keep groups afterwards."""
    for item in items:
        needs = {*getattr(item, "fixturenames", ()), *_params(item)}
        if needs & {"postgres", "databases", "cluster"}:
            item.add_marker("postgres")
        if needs & {"rabbit", "rabbit_url"}:
            item.add_marker("rabbitmq")
    result = yield
    keep_groups(config, items)
    return result


def _params(item: pytest.Item) -> Iterator[str]:
    spec = getattr(item, "callspec", None)
    return (value for value in spec.params.values() if isinstance(value, str)) if spec else iter(())


class Databases:
    """Databases on one PostgreSQL server, made and removed in a thread, out of the way of any test's loop."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._thread = ThreadPoolExecutor(1)
        self._runner = asyncio.Runner()

    def run(self, work: Coroutine[Any, Any, object]) -> None:
        """Do this in that thread, and wait for it."""
        self._thread.submit(self._runner.run, work).result()

    def make(self, name: str, template: str = "template1") -> str:
        """A copy of another database; gives back its URL."""
        self.run(self._execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"'))
        return urlsplit(self._url)._replace(path=f"/{name}").geturl()

    def drop(self, name: str) -> None:
        """Remove it, cutting the connections that use it."""
        self.run(self._execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'))

    def close(self) -> None:
        """Let the thread go."""
        self._thread.submit(self._runner.close).result()
        self._thread.shutdown()

    async def _execute(self, statement: str) -> None:
        connection = await asyncpg.connect(self._url)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresCluster]:
    """A PostgreSQL server of this worker's own; most tests want `postgres_url`."""
    if PostgresCluster.find() is None:
        pytest.skip("no PostgreSQL 14 or newer: install postgresql, or set TIDINGS_TEST_POSTGRES to a server")
    with PostgresCluster(parent=_roomy_folder(), settings={"max_wal_size": "128MB"}) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def rabbit() -> Iterator[RabbitBroker]:
    """A RabbitMQ of this run's own; those who use it are in the group `rabbitmq`, so that one is started."""
    if RabbitBroker.find() is None:
        pytest.skip("no RabbitMQ: install rabbitmq-server")
    with RabbitBroker(parent=_roomy_folder()) as broker:
        yield broker


@pytest.fixture(scope="session")
def rabbit_url(request: pytest.FixtureRequest) -> str:
    """Its URL; `TIDINGS_TEST_RABBITMQ` names a broker that runs already, and whose queues may be deleted."""
    existing = os.environ.get("TIDINGS_TEST_RABBITMQ")
    if existing:
        return existing
    broker: RabbitBroker = request.getfixturevalue("rabbit")
    return broker.url


@pytest.fixture(scope="session")
def databases(request: pytest.FixtureRequest) -> Iterator[Databases]:
    """Where PostgreSQL databases are made and removed."""
    existing = os.environ.get("TIDINGS_TEST_POSTGRES")
    made = Databases(existing or request.getfixturevalue("postgres").dsn())
    yield made
    made.close()


@pytest.fixture(scope="session")
def furnished(databases: Databases) -> Iterator[str]:
    """The name of a database with all tables and no rows: copying it is quicker than making the tables."""
    name = f"t{os.getpid()}_furnished"
    url = databases.make(name)
    databases.run(_furnish(PostgresStore(url, connections=1)))
    yield name
    databases.drop(name)


async def _furnish(store: Store) -> None:
    await store.open()
    await store.close()


@pytest.fixture
def postgres_url(databases: Databases, furnished: str) -> Iterator[str]:
    """The URL of a database with all tables and no rows, removed after the test."""
    name = f"t{os.getpid()}_{next(_numbers)}"
    yield databases.make(name, furnished)
    databases.drop(name)


@pytest.fixture
def bare_postgres_url(databases: Databases) -> Iterator[str]:
    """The URL of a database with nothing in it, removed after the test."""
    name = f"t{os.getpid()}_{next(_numbers)}"
    yield databases.make(name)
    databases.drop(name)


@pytest.fixture(scope="session")
def furnished_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with all tables and no rows, to be copied."""
    path = tmp_path_factory.mktemp("furnished") / "tidings.db"
    with ThreadPoolExecutor(1) as thread:  # the test that asks first may have a loop running
        thread.submit(asyncio.run, _furnish(SqliteStore(path, now=time.time_ns, inline=True))).result()
    return path


@pytest.fixture
def sqlite_file(tmp_path: Path, furnished_file: Path) -> Path:
    """A SQLite file with all tables and no rows."""
    return Path(shutil.copy(furnished_file, tmp_path / "tidings.db"))


@pytest.fixture
def sqlite_url(sqlite_file: Path) -> str:
    """Its URL."""
    return f"sqlite:///{sqlite_file}"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Makes a disk of the size that it is given ("2m"), in memory; it is gone after the test."""
    place = tmp_path / "disk"

    def make(size: str) -> Path:
        place.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("only root can make a small disk")
        return place

    yield make
    if place.is_mount():
        subprocess.run(["umount", "--lazy", place], check=True)


def _roomy_folder() -> Path | None:
    """Memory, if there is plenty: fsync stays on, as in production, yet costs nothing."""
    has_room = _MEMORY_DISK.is_dir() and os.access(_MEMORY_DISK, os.W_OK)
    return _MEMORY_DISK if has_room and shutil.disk_usage(_MEMORY_DISK).free > _ROOM_NEEDED else None
