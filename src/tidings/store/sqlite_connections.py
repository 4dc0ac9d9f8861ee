"""Connections to one SQLite file: location, durability and file mode."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import apsw

from ..model.errors import StoreUnusable
from .sqlite_files import refuse_remote

_STATEMENTS = 512  # prepared statements per connection: all there are
_PRAGMAS = (
    ("journal_mode=wal", "wal"),
    ("synchronous=full", None),
    ("cache_size=-65536", None),
    ("foreign_keys=on", None),
    ("wal_autocheckpoint=4000", None),
)


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
