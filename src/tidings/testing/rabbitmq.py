"""A private RabbitMQ broker for tests, with its own data, ports and names; ended by pid.

It never touches a broker of the system. Erlang's port mapper is private, too. When the process that started
it dies, even by SIGKILL, a watchdog ends the broker and removes its folder.

    with RabbitBroker() as broker:
        url = broker.url
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from tidings.model.errors import Misconfigured, OperatorError

from .private_server import PrivateServer, find_programs, wait_until
from .watchdog import listening_processes

_NEEDED = ("rabbitmq-server", "rabbitmqctl")


class RabbitBroker(PrivateServer):
    """One broker with its own data; started by `start` or by entering the context.

    `folder` holds its data and is kept; the default is a temporary one in `parent`, removed by `close`.
    """

    def __init__(self, folder: Path | None = None, *, parent: Path | None = None) -> None:
        super().__init__(folder, parent)
        self.port, self._distribution, self._mapper = _free_ports(3)
        self._name = f"tidings{self.port}@localhost"

    @staticmethod
    def find() -> Path | None:
        """Return the folder with RabbitMQ's programs, or None. `TIDINGS_TEST_RABBIT_BIN` overrides it."""
        return find_programs("TIDINGS_TEST_RABBIT_BIN", "RabbitMQ", " and ".join(_NEEDED), _usable, _candidates())

    @property
    def url(self) -> str:
        """The AMQP URL, on loopback only."""
        return f"amqp://guest:guest@127.0.0.1:{self.port}/"

    def start(self, timeout: float = 90) -> Self:
        """Start it (on existing data, if any) and wait until it accepts connections."""
        if self.is_running:
            return self
        binaries = self.find()
        if binaries is None:
            raise Misconfigured("No RabbitMQ was found", remedy="Install the package rabbitmq-server")
        home = self._made_home()
        self._launch([binaries / "rabbitmq-server"], home / "out", cwd=home, env=self._environment(home))
        if not wait_until(lambda: self._answers() or not self.is_running, timeout) or not self.is_running:
            self.kill()
            output = (home / "out").read_text(errors="replace")[-2000:]
            raise OperatorError("RabbitMQ did not start", remedy=f"Its output:\n{output}")
        return self

    def kill(self) -> None:
        """SIGKILL it, as in a crash, and wait until it is gone."""
        self._end(signal.SIGKILL, 30)

    def stop(self) -> None:
        """Stop gracefully; the data stays for the next `start`."""
        self._end(signal.SIGTERM, 30)

    def control(self, *words: str) -> str:
        """Run `rabbitmqctl` on it. Return its output."""
        binaries = self.find()
        if binaries is None or not self.is_running:
            raise OperatorError("The broker is not running", remedy="Call start() first")
        home = self._made_home()
        done = subprocess.run(
            [binaries / "rabbitmqctl", "-n", self._name, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            cwd=home,
            env=self._environment(home),
        )
        if done.returncode:
            raise OperatorError(f"rabbitmqctl {words[0]} failed", remedy=(done.stderr or done.stdout).strip())
        return done.stdout

    def close(self) -> None:
        """Stop, and remove temporary files: everything but a `folder` given by the caller."""
        self.kill()
        for pid in listening_processes(self._mapper):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        if self._home is not None and self._folder is None:
            shutil.rmtree(self._home, ignore_errors=True)
        self._home = None
        self._watchdog.release()

    def _made_home(self) -> Path:
        if self._home is None:
            self._home = self._folder or Path(tempfile.mkdtemp(prefix="tr", dir=self._parent))
            self._watch()
            self._home.mkdir(parents=True, exist_ok=True)
            (self._home / "plugins").write_text("[].\n")
            (self._home / "rabbitmq.conf").write_text("log.console = true\nlog.console.level = warning\n")
        return self._home

    def _watch(self) -> None:
        folders = [self._home] if self._home is not None and self._folder is None else []
        group = self._process.pid if self._process is not None else None
        self._watchdog.watch(folders=folders, group=group, port=self._mapper)

    def _environment(self, home: Path) -> dict[str, str]:
        return {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(self._mapper),
            "RABBITMQ_NODENAME": self._name,
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(self._distribution),
            "RABBITMQ_MNESIA_BASE": str(home / "data"),
            "RABBITMQ_LOG_BASE": str(home / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "plugins"),
            "RABBITMQ_CONFIG_FILE": str(home / "rabbitmq"),
        }

    def _answers(self) -> bool:
        """Whether it speaks AMQP: it answers a wrong protocol header with the right one."""
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1) as it:
            it.sendall(b"AMQP\x00\x00\x00\x00")
            return it.recv(4) == b"AMQP"
        return False

    def _end(self, by: signal.Signals, timeout: float) -> None:
        """Signal the process group: the server is a script that starts the Erlang VM."""
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, by)
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(timeout)
        self._process = None
        self._watch()
        wait_until(lambda: not _is_taken(self.port), 10)


def _candidates() -> Iterator[Path]:
    """Return folders with the programs themselves; those on the PATH may switch accounts."""
    yield from sorted(Path("/usr/lib/rabbitmq/lib").glob("rabbitmq_server-*/sbin"), reverse=True)
    yield from sorted(Path("/opt").glob("rabbitmq*/sbin"), reverse=True)
    if found := shutil.which("rabbitmq-server"):
        yield Path(found).resolve().parent


def _usable(folder: Path) -> bool:
    return all((folder / name).exists() for name in _NEEDED) and shutil.which("erl") is not None


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()


def _is_taken(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
