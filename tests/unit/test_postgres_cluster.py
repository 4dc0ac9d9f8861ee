"""The private PostgreSQL cluster, with a real server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest
from tests.time_limits import Limit

from tidings.model.errors import Misconfigured, OperatorError
from tidings.testing import PostgresCluster

pytestmark = [pytest.mark.postgres, pytest.mark.xdist_group("postgres-cluster")]


@pytest.fixture(scope="module")
def shared() -> Iterator[PostgresCluster]:
    """A server of this module's own, because these tests end it."""
    if PostgresCluster.find() is None:
        pytest.skip("no PostgreSQL 14 or newer: install postgresql")
    with PostgresCluster() as running:
        yield running


@pytest.fixture
def cluster(shared: PostgresCluster) -> PostgresCluster:
    """The module's server, running, without the databases of the test before."""
    shared.start().drop_database("orders")
    return shared


async def ask(url: str, question: str) -> object:
    connection = await asyncpg.connect(url, timeout=10)
    try:
        return await connection.fetchval(question)
    finally:
        await connection.close()


async def test_a_cluster_answers_with_durable_settings(cluster: PostgresCluster) -> None:
    """A fresh server is at least version 14, syncs to disk and takes many connections."""
    url = cluster.create_database("orders")

    assert int(str(await ask(url, "SHOW server_version_num"))) >= 140000
    assert await ask(url, "SHOW fsync") == "on"
    assert await ask(url, "SHOW max_connections") == "200"
    assert await ask(url, "SHOW listen_addresses") == ""


async def test_a_committed_row_survives_a_kill(cluster: PostgresCluster) -> None:
    """After SIGKILL of every process the same data comes back, and the open connection is cut."""
    url = cluster.create_database("orders")
    bystander = await asyncpg.connect(url)
    await bystander.execute("CREATE TABLE kept (n int); INSERT INTO kept VALUES (42)")
    first = cluster.pid

    cluster.kill()

    assert not cluster.is_running
    with pytest.raises((OSError, asyncpg.PostgresConnectionError)):
        await ask(url, "SELECT 1")
    cluster.start()
    assert cluster.pid != first
    assert await ask(url, "SELECT n FROM kept") == 42
    with pytest.raises((OSError, asyncpg.InterfaceError, asyncpg.PostgresConnectionError)):
        await bystander.fetchval("SELECT 1")
    bystander.terminate()


async def test_a_restart_keeps_data_and_address(cluster: PostgresCluster) -> None:
    """Stopping in order and starting again changes nothing for a client that reconnects."""
    url = cluster.create_database("orders")

    cluster.restart()

    assert await ask(url, "SELECT current_database()") == "orders"


async def test_a_dropped_database_is_gone_although_in_use(cluster: PostgresCluster) -> None:
    """Dropping cuts who is still connected, so that a leaking test cannot block the next."""
    url = cluster.create_database("orders")
    bystander = await asyncpg.connect(url)

    cluster.drop_database("orders")

    with pytest.raises(asyncpg.InvalidCatalogNameError):
        await ask(url, "SELECT 1")
    bystander.terminate()


def test_a_closed_cluster_leaves_nothing_behind(shared: PostgresCluster) -> None:
    """No process and no folder remain, and its address is refused rather than invented."""
    cluster = PostgresCluster().start()
    home, pid = cluster.home, cluster.pid

    cluster.close()

    assert not home.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(OperatorError, match="start"):
        cluster.dsn("orders")


def test_a_cluster_starts_quickly_and_its_socket_path_is_short(cluster: PostgresCluster) -> None:
    """A second start takes well under the three seconds that a test run can spare."""
    assert len(str(cluster.home / ".s.PGSQL.5432")) < 100
    cluster.stop()
    limit = Limit(3)

    cluster.start()

    assert not limit.is_over()


def test_a_folder_with_other_content_is_refused(tmp_path: Path) -> None:
    """A data folder given by mistake is neither filled nor handed to another account."""
    if PostgresCluster.find() is None:
        pytest.skip("no PostgreSQL 14 or newer: install postgresql")
    (tmp_path / "letter.txt").write_text("mine")
    owner = tmp_path.stat().st_uid

    with pytest.raises(Misconfigured, match="empty folder"), PostgresCluster(tmp_path):
        pass

    assert tmp_path.stat().st_uid == owner
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_a_wrong_folder_of_programs_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An explicit choice that cannot work is an error, not a reason to use another server."""
    monkeypatch.setenv("TIDINGS_TEST_PG_BIN", str(tmp_path))

    with pytest.raises(Misconfigured, match="TIDINGS_TEST_PG_BIN"):
        PostgresCluster.find()


async def test_each_test_gets_an_empty_database(bare_postgres_url: str) -> None:
    """The shared fixture hands out a database without tables."""
    assert await ask(bare_postgres_url, "SELECT count(*) FROM pg_stat_user_tables") == 0
