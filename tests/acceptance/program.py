"""The program as a user runs it: real processes, in a folder of their own, with nothing set by accident."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue
from typing import Any, TypeVar
from urllib.request import Request, urlopen

from ..launcher import Forked, fork_server
from ..time_limits import Limit

T = TypeVar("T")

COMMAND = (sys.executable, "-m", "tidings.cli")
PATIENCE = 90.0  # seconds; reached only when something is broken


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment without our own variables, and these."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TIDINGS_")}
    return {**clean, "COLUMNS": "120", **(more or {})}


def run(
    *words: str, folder: Path, env: Mapping[str, str] | None = None, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """One command to its end, with pipes where a terminal would be."""
    return subprocess.run(
        [fork_server().folder / "tidings", *words], cwd=folder, env=environment(env), input=stdin,
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip


def until(look: Callable[[], T | None], what: str) -> T:
    """The first true answer; fails when it does not come in time."""
    limit, pause = Limit(PATIENCE), threading.Event()
    while not (answer := look()):
        assert not limit.is_over(), f"waited in vain: {what}"
        pause.wait(0.05)
    return answer


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def get(url: str) -> Any:
    """What an address answers, as JSON."""
    with urlopen(url, timeout=PATIENCE) as answer:
        return json.load(answer)


def post(url: str, body: object) -> Any:
    """The answer to a JSON body."""
    request = Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urlopen(request, timeout=PATIENCE) as answer:
        return json.load(answer)


class Serving:
    """A running `tidings serve`, from the moment it says that it is ready."""

    def __init__(self, process: Forked) -> None:
        self.process = process
        self.told: list[str] = []  # what it said on standard output
        self.logged: list[str] = []
        self._news: Queue[str] = Queue()
        for stream, kept in ((process.stdout, self.told), (process.stderr, self.logged)):
            threading.Thread(target=self._listen, args=(stream, kept), daemon=True).start()

    def _listen(self, stream: Any, kept: list[str]) -> None:
        for raw in stream:
            line = raw.decode(errors="replace")
            kept.append(line.rstrip("\n"))
            self._news.put(line)
        self._news.put("")

    def hears(self, words: str) -> None:
        """Wait until it says or logs this."""
        limit = Limit(PATIENCE)
        while not any(words in line for line in [*self.told, *self.logged]):
            assert not limit.is_over(), f"never said {words!r}: {self.told} {self.logged}"
            try:
                ended = not self._news.get(timeout=1) and self.process.poll() is not None
            except Empty:
                continue
            said = any(words in line for line in [*self.told, *self.logged])
            assert said or not ended, f"ended before it said {words!r}: {self.told} {self.logged}"

    def address(self, name: str) -> str:
        """Return the address of the dashboard or the sandbox from the banner."""
        found = re.search(rf"^\s+{name}\s+(http://\S+?)/?(\s|$)", "\n".join(self.told), re.MULTILINE)
        assert found, self.told
        return found[1]

    def kill(self) -> None:
        """As a power cut would."""
        self.process.kill()
        self.process.wait(PATIENCE)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Ask it to stop; its exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


@contextmanager
def serving(
    folder: Path, *words: str, env: Mapping[str, str] | None = None, files: int | None = None
) -> Iterator[Serving]:
    """`tidings serve` on free ports, with at most `files` open; ended with the block, however that ends."""
    process = fork_server().start(
        "tidings.cli",
        *("serve", "--port", "0", *words),
        cwd=folder,
        files=files,
        env=environment({"TIDINGS_SANDBOX_PORT": "0", **(env or {})}),
    )
    served = Serving(process)
    try:
        served.hears("Press Ctrl-C to stop")
        yield served
    finally:
        if process.poll() is None:
            served.kill()
