"""`tidings serve` takes no connection before its database was opened and checked (F39)."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from tidings.cli.ports import PortInUse, accept_on, bind, port_of

from ..contract.test_pgbouncer import PAGE, PROGRAM, pooler, recipe
from ..launcher import fork_server
from .program import PATIENCE, Serving, environment, free_port, get, serving, until


@contextmanager
def starting(folder: Path, database: str, port: int) -> Iterator[Serving]:
    """`tidings serve` from its first moment, whether it gets ready or not."""
    process = fork_server().start(
        "tidings.cli",
        *("serve", "--no-sandbox", "--port", str(port), "--database", database),
        cwd=folder,
        env=environment(),
    )
    served = Serving(process)
    try:
        yield served
    finally:
        if process.poll() is None:
            served.kill()


def connects(port: int) -> bool:
    """Whether somebody takes a connection there."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_the_port_is_closed_while_the_database_does_not_answer(tmp_path: Path) -> None:
    """A server that takes the connection and says nothing: no port, and in the end a clear error."""
    port = free_port()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(PATIENCE)
        url = f"postgresql://tidings@127.0.0.1:{silent.getsockname()[1]}/tidings"
        with starting(tmp_path, url, port) as served:
            asked, _ = silent.accept()
            with asked:
                is_open = connects(port)
            silent.close()
            code = served.process.wait(PATIENCE)
    assert not is_open, "connections were taken before the database had answered"
    until(lambda: any("PostgreSQL does not respond" in line for line in served.logged), "the error")
    assert code == 75


@pytest.mark.skipif(PROGRAM is None, reason="no PgBouncer: install pgbouncer")
@pytest.mark.postgres
def test_the_port_stays_closed_behind_a_pooler_that_is_refused(tmp_path: Path, postgres_url: str) -> None:
    """Transaction pooling is refused before anybody could connect."""
    port, seen, over = free_port(), [], threading.Event()

    def look() -> None:
        while not over.wait(0.002):
            if connects(port):
                seen.append(port)
                return

    ignored, _ = recipe(PAGE.read_text())
    with pooler(postgres_url, "transaction", ignored) as url:
        until(lambda: connects(urlsplit(url).port or 0), "PgBouncer")
        looking = threading.Thread(target=look)
        looking.start()
        with starting(tmp_path, url, port) as served:
            code = served.process.wait(PATIENCE)
        over.set()
        looking.join()
    until(lambda: any("pool_mode = session" in line for line in served.logged), "the error")
    assert (code, seen) == (70, [])


@pytest.mark.postgres
def test_several_servers_in_the_url_lead_to_the_one_that_takes_writes(tmp_path: Path, postgres_url: str) -> None:
    """The URL of the page about PostgreSQL, with a dead server in front of the primary."""
    parts = urlsplit(postgres_url)
    primary = quote(parse_qs(parts.query)["host"][0], safe="")
    example = re.search(r'database = "(postgresql://\S+,\S+)"', PAGE.read_text())
    assert example is not None
    url = example[1].replace("tidings@db1,db2/tidings", f"tidings@127.0.0.1:{free_port()},{primary}{parts.path}")
    assert url != example[1]
    with serving(tmp_path, "--no-sandbox", "--database", url) as served:
        assert get(served.address("dashboard") + "/health/ready") == {"status": "ready"}


def test_a_second_server_on_the_same_port_reports_that_it_is_in_use() -> None:
    """Both may bind it before either takes connections; which of them listens first has it."""
    first = bind("127.0.0.1", 0, remedy="choose another")
    second = bind("127.0.0.1", port_of(first), remedy="choose another")
    with first, second:
        assert not connects(port_of(first))
        accept_on(first, remedy="choose another")
        with pytest.raises(PortInUse, match=f"port {port_of(first)} on 127.0.0.1 is in use"):
            accept_on(second, remedy="choose another")
        assert connects(port_of(first))
