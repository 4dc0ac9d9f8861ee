"""Exclusive locks on open files, which the system releases when the process ends; on POSIX and on Windows."""

from __future__ import annotations

import importlib

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


def lock_file(fd: int, *, wait: bool = False) -> None:
    """Lock the file; raise OSError if another process holds the lock and `wait` is false."""
    if fcntl is not None:
        fcntl.flock(fd, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    msvcrt = importlib.import_module("msvcrt")
    msvcrt.locking(fd, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
