"""A watchdog: ends a server and removes its folders when the process that started it is gone.

It is a process in its own session that reads a pipe from its owner. The pipe closes with the owner, even on
SIGKILL; then the watchdog cleans up as the last line says. The file is run by its path and uses only the
standard library, so that the process starts quickly.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

_TIMEOUT = 15.0  # seconds: PostgreSQL kills children that ignore an immediate shutdown after five


class Watchdog:
    """Cleans up after this process. A second `watch` replaces the first."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def watch(
        self,
        *,
        folders: Iterable[Path] = (),
        group: int | None = None,
        by: signal.Signals = signal.SIGKILL,
        port: int | None = None,
    ) -> None:
        """If this process dies: signal the process group, end listeners on `port`, remove `folders`."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-IS", __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,  # a signal to our group must not end it, too
            )
        left = {"folders": [*map(str, folders)], "group": group, "by": int(by), "port": port}
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # the watchdog was killed
            self._process.stdin.write(json.dumps(left).encode() + b"\n")
            self._process.stdin.flush()

    def release(self) -> None:
        """End the watchdog: everything is cleaned up."""
        if self._process is not None:
            self.watch()
            self._process.communicate()
            self._process = None


def listening_processes(port: int) -> list[int]:
    """Return the processes that listen on a TCP port, from /proc."""
    inodes = set()
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        with contextlib.suppress(OSError):
            for line in table.read_text().splitlines()[1:]:
                words = line.split()
                if words[3] == "0A" and int(words[1].rpartition(":")[2], 16) == port:
                    inodes.add(words[9])
    found = []
    for folder in Path("/proc").glob("[0-9]*/fd"):
        with contextlib.suppress(OSError):
            for link in folder.iterdir():
                held = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(link))
                if held and held[1] in inodes:
                    found.append(int(folder.parent.name))
    return found


def _clean(folders: list[str], group: int | None, by: int, port: int | None) -> None:
    if group is not None:
        _end(group, by)
    for pid in listening_processes(port) if port is not None else ():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    give_up = time.monotonic() + _TIMEOUT
    while any(map(os.path.exists, folders)) and time.monotonic() < give_up:
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
        time.sleep(0.05)  # a process may still be writing there


def _end(group: int, by: int) -> None:
    """Signal the group, resume it in case it was stopped, and kill it if it does not end."""
    give_up = time.monotonic() + _TIMEOUT
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, by)
        os.killpg(group, signal.SIGCONT)
        while time.monotonic() < give_up:
            os.killpg(group, 0)
            time.sleep(0.02)
        os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    last = {}
    for said in sys.stdin:
        last = json.loads(said)
    if last:
        _clean(**last)
