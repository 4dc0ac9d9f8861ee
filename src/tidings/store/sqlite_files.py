"""The files of a SQLite database: durable connections, work lock and wake-up socket; no network file systems."""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
from collections.abc import Callable
from pathlib import Path

import apsw

from ..model.errors import StoreUnusable
from ..wire.file_locks import lock_file

_REMOTE = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "9p", "fuse.sshfs", "ceph", "glusterfs"})
_STATEMENTS = 512  # prepared statements per connection: all there are
_PRAGMAS = (
    ("journal_mode=wal", "wal"),
    ("synchronous=full", None),
    ("cache_size=-65536", None),
    ("foreign_keys=on", None),
    ("wal_autocheckpoint=4000", None),
)


class FileLock:
    """An exclusive lock that the system releases when its process ends, in any way."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd: int | None = None

    def take(self) -> bool:
        """Take the lock if it is free, without waiting."""
        if self._fd is not None:
            return True
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)  # not inherited by other programs (PEP 446)
        try:
            lock_file(fd)
        except OSError:
            os.close(fd)
            return False
        self._fd = fd
        return True

    def free(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


class WakeSocket:
    """A datagram socket beside the file: one byte is a wake-up hint. A lost one is harmless."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._receiver: socket.socket | None = None
        self._sender = _datagram_socket()

    def listen(self) -> int | None:
        """Receive hints. Return the descriptor to watch, or None if there can be no such socket: polling is enough."""
        receiver = _datagram_socket()
        if receiver is None:
            return None
        with contextlib.suppress(OSError):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path)
            receiver.bind(self._path)
            os.chmod(self._path, 0o600)
            self._receiver = receiver
            return receiver.fileno()
        return None

    def drain(self) -> None:
        """Discard received datagrams."""
        with contextlib.suppress(OSError):
            while self._receiver is not None and self._receiver.recv(64):
                pass

    def send(self) -> None:
        """Send a hint to the listening process."""
        if self._sender is not None:
            with contextlib.suppress(OSError):
                self._sender.sendto(b"!", self._path)

    def close(self) -> None:
        """Close both ends."""
        if self._sender is not None:
            self._sender.close()
        if self._receiver is not None:
            self._receiver.close()
            with contextlib.suppress(OSError):
                os.unlink(self._path)
            self._receiver = None


def _datagram_socket() -> socket.socket | None:
    """A local socket; None on Windows."""
    family = getattr(socket, "AF_UNIX", None)
    if family is None:
        return None
    made = socket.socket(family, socket.SOCK_DGRAM)
    made.setblocking(False)
    return made


def refuse_unwritable(path: Path) -> None:
    """Create the folder. Raises StoreUnusable if the file cannot be written."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnusable(
            f"the folder {path.parent} cannot be created ({error.strerror})",
            remedy="use another path with --database sqlite:///path, or fix its permissions",
        ) from error
    refuse_remote(path.parent)
    if not os.access(path.parent, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise StoreUnusable(
            f"{path} cannot be written",
            remedy=f"check the owner, mode and mount of {path.parent.resolve()}, or use another --database",
        )


def connect(path: Path, now: Callable[[], int]) -> apsw.Connection:
    """Open a durable connection. Raises StoreUnusable if durability is not possible."""
    connection = apsw.Connection(str(path), statementcachesize=_STATEMENTS)
    connection.setbusytimeout(5000)
    for pragma, wanted in _PRAGMAS:
        answer = list(connection.execute(f"pragma {pragma}"))
        if wanted is not None and answer[0][0] != wanted:
            raise StoreUnusable(f"SQLite rejected {pragma}", remedy="use a local disk")
    if next(iter(connection.execute("pragma synchronous")))[0] != 2:
        raise StoreUnusable("SQLite did not keep synchronous=FULL", remedy="use a local disk")
    # Otherwise calls with other values are planned again, at five times the cost of a small statement.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    connection.create_scalar_function("tidings_now", lambda *_: now(), 0)
    connection.create_scalar_function("tidings_sha256", _sha256, 1, deterministic=True)
    return connection


def _sha256(*text: object) -> str:
    return hashlib.sha256(str(text[0]).encode()).hexdigest()


def keep_private(path: Path) -> None:
    """Restrict the file's mode: it contains messages. SQLite's other files inherit it."""
    for name in ("", "-wal", "-shm"):
        file = path.with_name(path.name + name)
        if file.exists() and file.stat().st_mode & 0o077:
            file.chmod(0o600)


def refuse_remote(path: Path) -> None:
    """Raise StoreUnusable on a network file system, where SQLite's locks do not work."""
    kind = _file_system(path)
    if kind in _REMOTE:
        raise StoreUnusable(
            f"{path} is on a network file system ({kind}), where SQLite's locks do not work",
            remedy="use a local disk, or PostgreSQL",
        )


def _file_system(path: Path) -> str:
    real = str(path.resolve())
    best, kind = "", ""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/mounts").read_text().splitlines():
            fields = line.split()
            point = fields[1].replace("\\040", " ")
            if (real == point or real.startswith(point.rstrip("/") + "/")) and len(point) >= len(best):
                best, kind = point, fields[2]
    return kind
