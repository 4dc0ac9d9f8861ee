"""How much memory this process holds, as the kernel counts it."""

from __future__ import annotations

from pathlib import Path


def resident_mb() -> float:
    """Held now."""
    return _status("VmRSS")


def peak_mb() -> float:
    """The most ever held by this program (`ru_maxrss` would also count the parent it was forked from)."""
    return _status("VmHWM")


def _status(name: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return round(int(line.split()[1]) / 1024, 1)
    raise LookupError(name)
