"""A counter shared by several processes: each adds to its own slot, and the reader sums the slots."""

from __future__ import annotations

import mmap
import os
import threading
import time
from functools import cache
from pathlib import Path

_PLACES = 64


_making = threading.Lock()


def counter(path: str) -> Counter:
    """The counter of this process, the same for all of its threads."""
    with _making:
        return _counter(path, os.getpid())


@cache
def _counter(path: str, _pid: int) -> Counter:
    return Counter(path)


class Counter:
    """Eight bytes for each process, in a file that all of them map."""

    def __init__(self, path: Path | str) -> None:
        with open(path, "a+b") as file:
            if os.fstat(file.fileno()).st_size < 8 * _PLACES:
                file.truncate(8 * _PLACES)
            self._map = mmap.mmap(file.fileno(), 8 * _PLACES)
        self._place = 8 * (os.getpid() % _PLACES)
        self._own = 0
        self._lock = threading.Lock()

    def add(self, count: int = 1) -> None:
        """Only this process writes here."""
        with self._lock:
            self._own += count
            self._map[self._place : self._place + 8] = self._own.to_bytes(8, "little")

    def total(self) -> int:
        """Over all processes."""
        return sum(int.from_bytes(self._map[i : i + 8], "little") for i in range(0, 8 * _PLACES, 8))

    def rate(self, count: int, *, cap: float = 600) -> float:
        """Wait until so many are counted; gives how many a second, from the first one on."""
        give_up = time.monotonic() + cap
        first: tuple[float, int] | None = None
        while True:
            now, total = time.perf_counter(), self.total()
            if total and first is None:
                first = (now, total)
            if first is not None and total >= count:
                return (count - first[1]) / max(1e-6, now - first[0])
            if time.monotonic() > give_up:
                raise TimeoutError(f"only {total} of {count} after {cap:.0f} s")
            time.sleep(0.002)
