"""The embedded default starts without the modules and calls that Windows does not have."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .program import COMMAND, Serving, environment, get, post, until

pytestmark = [pytest.mark.crash, pytest.mark.timeout(180)]
WITHOUT_POSIX = """
import asyncio, os, signal, socket, sys, types
import asyncio.unix_events
for name in ("fcntl", "resource", "uvloop", "termios", "tty", "pwd", "grp"):
    sys.modules[name] = None
windows = types.ModuleType("msvcrt")
windows.LK_LOCK, windows.LK_NBLCK = 1, 2
windows.locking = lambda fd, mode, n: os.lockf(fd, os.F_LOCK if mode == 1 else os.F_TLOCK, n)
sys.modules["msvcrt"] = windows
for name in ("O_CLOEXEC", "O_NOFOLLOW", "O_DIRECTORY", "O_NONBLOCK"):
    delattr(os, name)
def refuse(*_):
    raise NotImplementedError
asyncio.unix_events._UnixSelectorEventLoop.add_signal_handler = refuse
from tidings.cli import main
from tidings.store import sqlite_files
bare = types.ModuleType("socket")  # asyncio itself needs the real one here
vars(bare).update({name: value for name, value in vars(socket).items() if name not in ("AF_UNIX", "SOCK_NONBLOCK")})
sqlite_files.socket = bare
sys.argv[0] = "tidings"
main()
"""


def start(folder: Path, *words: str) -> Serving:
    """A `tidings serve` on a machine without POSIX calls."""
    process = subprocess.Popen(
        [sys.executable, "-c", WITHOUT_POSIX, "serve", "--port", "0", *words],
        cwd=folder, env=environment({"TIDINGS_SANDBOX_PORT": "0"}), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    return Serving(process)  # type: ignore[arg-type]


def test_the_engine_starts_sends_and_stops_without_posix(tmp_path: Path) -> None:
    """SQLite, the API, the simulated phone, the work lock and Ctrl-C; a second process leaves the work to the first."""
    first = start(tmp_path)
    second = None
    try:
        first.hears("Press Ctrl-C to stop")
        page = first.address("dashboard")
        id_ = post(f"{page}/v1/messages", {"channel": "phone", "to": "ada", "text": "hi"})["id"]
        until(lambda: get(f"{page}/v1/messages/{id_}")["state"] == "sent", "the message")
        second = start(tmp_path)
        second.hears("Press Ctrl-C to stop")
        nodes = subprocess.run(
            [*COMMAND, "nodes", "list", "--json"], cwd=tmp_path, env=environment(), capture_output=True, check=True
        )
        assert nodes.stdout.count(b'"live"') == 1
        second.process.kill()
        first.process.send_signal(2)
        assert first.process.wait(60) == 0, first.logged
    finally:
        for served in (first, second):
            if served is not None and served.process.poll() is None:
                served.process.kill()
