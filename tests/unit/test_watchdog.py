"""Private servers end with the process that started them, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.servers import is_running
from tests.time_limits import until

from tidings.testing import PostgresCluster, RabbitBroker
from tidings.testing.watchdog import listening_processes

pytestmark = pytest.mark.process

OWNER = """
import sys
from pathlib import Path
from tidings.testing import PostgresCluster, RabbitBroker

server = {maker}(parent=Path(sys.argv[1])).start()
print(server._process.pid, {port}, flush=True)
sys.stdin.read()
"""


def started(folder: Path, maker: str, port: str) -> tuple[subprocess.Popen[bytes], int, int]:
    """A process that owns a server; gives also the server's pid and a port that it listens on."""
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER.format(maker=maker, port=port), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert owner.stdout is not None
    pid, listens = map(int, owner.stdout.readline().split())
    return owner, pid, listens


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder that every account can pass through: root's server runs as another one."""
    with tempfile.TemporaryDirectory(prefix="tidings-watchdog-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.postgres
@pytest.mark.xdist_group("postgres-cluster")
@pytest.mark.parametrize("stopped", [False, True], ids=["running", "stopped by SIGSTOP"])
async def test_a_postgresql_server_and_its_folder_are_gone_after_its_owner_was_killed(
    reachable: Path, stopped: bool
) -> None:
    """The watchdog ends it, even a stopped one, and removes data, socket and log."""
    if PostgresCluster.find() is None:
        pytest.skip("no PostgreSQL 14 or newer: install postgresql")
    owner, server, _ = started(reachable, "PostgresCluster", "0")
    assert is_running(server) and any(reachable.iterdir())
    if stopped:
        os.kill(server, signal.SIGSTOP)

    owner.kill()
    owner.communicate()

    assert await until(lambda: not is_running(server)), "the server outlived its owner"
    assert await until(lambda: not any(reachable.iterdir())), "its folder is still there"


@pytest.mark.xdist_group("rabbitmq")
async def test_a_rabbitmq_broker_its_port_mapper_and_its_folder_are_gone_after_its_owner_was_killed(
    reachable: Path,
) -> None:
    """The watchdog ends both processes and removes the broker's data."""
    if RabbitBroker.find() is None:
        pytest.skip("no RabbitMQ: install rabbitmq-server")
    owner, broker, mapper = started(reachable, "RabbitBroker", "server._mapper")
    assert is_running(broker) and listening_processes(mapper) and any(reachable.iterdir())

    owner.kill()
    owner.communicate()

    assert await until(lambda: not is_running(broker)), "the broker outlived its owner"
    assert await until(lambda: not listening_processes(mapper)), "its port mapper outlived it"
    assert await until(lambda: not any(reachable.iterdir())), "its folder is still there"
