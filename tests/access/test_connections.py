"""Limits that hold before anybody is authenticated: headers, slow callers, connections (S17)."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

from ..acceptance.program import Serving, environment, get, post, serving, until
from ..launcher import fork_server
from ..time_limits import Limit

pytestmark = [pytest.mark.crash, pytest.mark.timeout(120)]
MEGABYTE = 1 << 20


@contextmanager
def connected(served: Serving) -> Iterator[socket.socket]:
    """A connection to the API; what is not answered within 20 s fails."""
    parts = urlsplit(served.address("dashboard"))
    assert parts.hostname and parts.port
    with socket.create_connection((parts.hostname, parts.port), timeout=20) as connection:
        yield connection


def answer(connection: socket.socket) -> tuple[int, str]:
    """The status and the rest of an answer after which the server closes."""
    text = b""
    with suppress(ConnectionResetError):  # the server closed while more was on its way to it
        while more := connection.recv(65_536):
            text += more
    head, _, body = text.decode().partition("\r\n\r\n")
    assert head, "closed without an answer"
    return int(head.split()[1]), head.partition("\r\n")[2] + "\n" + body


def peak_memory(served: Serving) -> int:
    """The most memory that the process has had, in bytes."""
    status = Path(f"/proc/{served.process.pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found
    return int(found[1]) << 10


@pytest.mark.parametrize(
    "begin",
    [
        b"GET /health HTTP/1.1\r\nhost: localhost\r\nx: ",
        b"GET /",
        b"POST /sign-in HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx: ",
    ],
    ids=["header", "target", "trailer"],
)
def test_a_huge_header_is_refused_before_it_costs_memory(tmp_path: Path, begin: bytes) -> None:
    """64 MB in one header line, target or trailer: refused after 64 KiB, and memory stays where it was."""
    with serving(tmp_path, "--no-sandbox") as served:
        get(served.address("dashboard") + "/health")
        before = peak_memory(served)
        with connected(served) as connection:
            connection.sendall(begin)
            with pytest.raises((BrokenPipeError, ConnectionResetError)):
                for _ in range(64):
                    connection.sendall(b"a" * MEGABYTE)
        assert peak_memory(served) - before < 8 * MEGABYTE


def test_a_header_over_the_limit_gets_431_and_one_under_it_is_served(tmp_path: Path) -> None:
    """The limit counts all lines together; what is allowed below it works."""
    with serving(tmp_path, "--no-sandbox") as served:
        for lines, expected in ((60, 200), (66, 431)):
            with connected(served) as connection:
                many = b"".join(b"x-%d: %s\r\n" % (n, b"a" * 1000) for n in range(lines))
                first = b"GET /health/live HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"
                connection.sendall(first + many + b"\r\n")
                status, text = answer(connection)
            assert status == expected
        assert json.loads(text.partition("\n")[2].strip().splitlines()[-1])["error"]["code"] == "header_too_large"


def test_a_header_or_an_open_form_that_drips_gets_408(tmp_path: Path) -> None:
    """A connection that says nothing, half a header, and half a body where no key is needed."""
    half = b"POST /sign-in HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n"
    form = half + b"content-type: application/x-www-form-urlencoded\r\n\r\nkey="
    with serving(tmp_path, "--no-sandbox", env={"TIDINGS_HEADER_TIMEOUT": "500ms"}) as served:
        for begin in (b"", half, form):
            with connected(served) as connection:
                connection.sendall(begin)
                limit = Limit(5)
                assert answer(connection)[0] == 408, begin
                assert not limit.is_over()


def test_connections_over_the_limit_get_503_until_others_close(tmp_path: Path) -> None:
    """With `Retry-After`; and whoever waits for the others to go is served."""
    with serving(tmp_path, "--no-sandbox", env={"TIDINGS_MAX_CONNECTIONS": "5"}) as served:
        with ExitStack() as open_ones:
            for _ in range(5):
                open_ones.enter_context(connected(served))
            with connected(served) as connection:
                status, text = answer(connection)
            assert (status, "retry-after: 1" in text) == (503, True)
        assert until(lambda: _health(served), "a free connection")["status"] == "up"


def test_half_open_connections_leave_the_worker_its_descriptors(tmp_path: Path) -> None:
    """A process that may open 200 files meets 300 half-open connections: a due message still goes out."""
    with serving(tmp_path, env={"TIDINGS_CONCURRENCY": "10"}, files=200) as served:
        sent = post(
            served.address("dashboard") + "/v1/messages", {"channel": "phone", "to": "ada", "text": "due", "in": "2s"}
        )
        with ExitStack() as half_open:
            for _ in range(300):
                connection = half_open.enter_context(connected(served))
                with suppress(OSError):  # refused
                    connection.sendall(b"GET /health HTTP/1.1\r\nx: ")
            folder = Path(f"/proc/{served.process.pid}/fd")
            due, most, pause = Limit(4), 0, threading.Event()
            while due.left > 0:
                most = max(most, len(list(folder.iterdir())))
                pause.wait(0.02)
            assert most < 150
        id_ = sent["id"]
        row = until(lambda: _over(served, id_), "the end of the message")
        assert (row["state"], row["attempts"]) == ("sent", 1)


def _health(served: Serving) -> dict[str, str] | None:
    try:
        found: dict[str, str] = get(served.address("dashboard") + "/health")
    except OSError:
        return None
    return found


def _over(served: Serving, id_: str) -> dict[str, object] | None:
    try:
        row: dict[str, object] = get(served.address("dashboard") + f"/v1/messages/{id_}")
    except OSError:
        return None
    return row if row["state"] in ("sent", "failed") else None


def test_a_caller_that_goes_away_in_a_row_of_requests_leaves_no_traceback(tmp_path: Path) -> None:
    """Several requests at once, then nonsense: what is being answered ends quietly."""
    body = b'{"channel": "console", "to": "ada", "text": "hello", "in": "1h"}'
    head = b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % len(body)
    with serving(tmp_path, "--no-sandbox") as served:
        for _ in range(50):
            with connected(served) as connection:
                connection.sendall((head + body) * 3 + b"\x00nonsense\r\n\r\n")
        assert get(served.address("dashboard") + "/health")["status"] == "up"
        assert served.stop() == 0
    assert [line for line in served.logged if "Traceback" in line] == []


@contextmanager
def sandbox(folder: Path, *, files: int) -> Iterator[tuple[str, int]]:
    """`tidings sandbox` with so many files; gives its host and port."""
    process = fork_server().start("tidings.cli", "sandbox", "--port", "0", cwd=folder, files=files, env=environment())
    served = Serving(process)
    try:
        served.hears("Its ledger is")
        found = re.search(r"http://([\d.]+):(\d+)/", "\n".join(served.told))
        assert found
        yield found[1], int(found[2])
    finally:
        served.kill()


def test_the_sandbox_as_a_program_has_the_limits_of_the_api(tmp_path: Path) -> None:
    """A header over 64 KiB gets 431; connections over the limit get 503 until others close."""
    with sandbox(tmp_path, files=200) as place:
        with socket.create_connection(place, timeout=20) as connection:
            many = b"".join(b"x-%d: %s\r\n" % (n, b"a" * 1000) for n in range(66))
            connection.sendall(b"GET / HTTP/1.1\r\nhost: localhost\r\n" + many + b"\r\n")
            status, text = answer(connection)
        assert status == 431 and "header_too_large" in text
        with ExitStack() as half_open:
            for _ in range(60):
                connection = half_open.enter_context(socket.create_connection(place, timeout=20))
                connection.sendall(b"GET / HTTP/1.1\r\nx: ")
            # The last of them is over the limit: it is answered at once, not after the time for a header.
            status, text = answer(connection)
            assert (status, "retry-after: 1" in text) == (503, True)
        until(lambda: _serves(place), "a free connection")


def _serves(place: tuple[str, int]) -> bool:
    with suppress(OSError), urlopen(f"http://{place[0]}:{place[1]}/sandbox/faults", timeout=20) as got:
        return int(got.status) == 200
    return False
