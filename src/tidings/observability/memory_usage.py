"""CPU use of this process, its memory use and its memory limit.

The limit is the smallest of the container's limit, the process's rlimit, and the machine's memory.
"""

from __future__ import annotations

import time
from pathlib import Path

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_CONTAINER = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
_USED = Path("/proc/self/statm")
_MACHINE = Path("/proc/meminfo")


class CpuUsage:
    """CPU use of this process between two readings."""

    def __init__(self) -> None:
        self._at, self._spent = time.monotonic(), time.process_time()

    def fraction(self) -> float:
        """Return the share of one core used since the last reading; over 1 with several busy threads."""
        at, spent = time.monotonic(), time.process_time()
        share = (spent - self._spent) / max(at - self._at, 1e-6)
        self._at, self._spent = at, spent
        return share


def used_bytes() -> int | None:
    """Return the bytes in use; None if the system does not tell."""
    try:
        return int(_USED.read_text().split()[1]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return None


def limit_bytes() -> int | None:
    """Return the bytes that this process may use; None if the system does not tell."""
    found = [limit for limit in (*map(_whole, _CONTAINER), _own(), _machine()) if limit is not None]
    return min(found, default=None)


def usage_fraction(limit: int | None = None) -> float | None:
    """Return the fraction in use, from 0 to 1; `limit` takes precedence over the system's."""
    has, may = used_bytes(), limit or limit_bytes()
    return None if has is None or not may else has / may


def _whole(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # no container, or "max"
        return None


def _own() -> int | None:
    if resource is None:
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def _machine() -> int | None:
    try:
        line = next(line for line in _MACHINE.read_text().splitlines() if line.startswith("MemTotal:"))
        return int(line.split()[1]) * 1024
    except (OSError, ValueError, StopIteration, IndexError):
        return None
