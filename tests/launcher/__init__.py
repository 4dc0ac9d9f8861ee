"""Processes that start at once: the program is loaded once, and forked for each command.

What runs is the real program in a process of its own, with the caller's arguments, folder, environment and
streams; only loading it is saved. Scripts find it as `tidings`, Python starts it with `ForkServer.start`.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import marshal
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Self

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
_MODULES = ("tests.crash.worker", "tidings.drill.receiver")


@functools.cache
def fork_server() -> ForkServer:
    """Start the fork server of this test process, once; it ends with the process."""
    ended = ExitStack()
    atexit.register(ended.close)
    folder = ended.enter_context(tempfile.TemporaryDirectory(prefix="tidings-fork-"))
    return ended.enter_context(ForkServer(Path(folder) / "bin", *_MODULES))


class ForkServer:
    """Starts processes; all of them are killed when it ends. `folder`, on the PATH, has a `tidings`."""

    def __init__(self, folder: Path, *modules: str) -> None:
        self.folder = folder
        self._address = folder / "socket"
        self._modules = modules

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True)
        script = self.folder / "tidings"
        code = (HERE / "client.py").read_text(encoding="utf-8")
        script.write_text(f"#!{sys.executable} -IS\nADDRESS = {str(self._address)!r}\n{code}", encoding="utf-8")
        script.chmod(0o755)
        self._server = subprocess.Popen(
            [sys.executable, str(HERE / "server.py"), str(self._address), *self._modules],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        assert self._server.stdout is not None and self._server.stdout.readline() == b"ready\n"
        return self

    def __exit__(self, *_: object) -> None:
        assert self._server.stdin is not None and self._server.stdout is not None
        self._server.stdin.close()  # it ends with us, however we end
        self._server.wait(10)
        self._server.stdout.close()

    def start(
        self,
        module: str,
        *arguments: str,
        cwd: Path,
        env: Mapping[str, str],
        stderr: IO[bytes] | None = None,
        files: int | None = None,
    ) -> Forked:
        """Run `python -m module` in a forked process with pipes, and at most `files` open files."""
        child_in, our_in = os.pipe()
        our_out, child_out = os.pipe()
        our_errors, child_errors = os.pipe() if stderr is None else (None, os.dup(stderr.fileno()))
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(str(self._address))
            body = marshal.dumps((str(cwd), list(arguments), dict(env), module, files or 0))
            head = struct.pack("!I", len(body))
            socket.send_fds(connection, [head], [child_in, child_out, child_errors])
            connection.sendall(body)
            (pid,) = struct.unpack("!i", connection.recv(4, socket.MSG_WAITALL))
        finally:
            for stream in (child_in, child_out, child_errors):
                os.close(stream)
        errors = None if our_errors is None else os.fdopen(our_errors, "rb")
        return Forked(pid, connection, os.fdopen(our_in, "wb", 0), os.fdopen(our_out, "rb"), errors)


class Forked:
    """A started process, with the methods of `subprocess.Popen` that tests use."""

    def __init__(
        self, pid: int, connection: socket.socket, stdin: IO[bytes], stdout: IO[bytes], stderr: IO[bytes] | None
    ) -> None:
        self.pid = pid
        self.stdin: IO[bytes] | None = stdin
        self.stdout: IO[bytes] | None = stdout
        self.stderr = stderr
        self.returncode: int | None = None
        self._connection = connection

    def poll(self) -> int | None:
        """Return its exit code, or None while it runs."""
        if self.returncode is None and select.select([self._connection], [], [], 0)[0]:
            self._take_code()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended and return its exit code."""
        if self.returncode is None:
            if not select.select([self._connection], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
            self._take_code()
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def _take_code(self) -> None:
        answer = self._connection.recv(4, socket.MSG_WAITALL)
        self._connection.close()
        (self.returncode,) = struct.unpack("!i", answer) if answer else (70,)
