"""External sort: sorts more rows than fit in memory through a temporary file."""

from __future__ import annotations

import heapq
import json
import tempfile
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any, BinaryIO

LARGEST_RUN = 8_000_000  # bytes of rows in memory
_AT_ONCE = 1 << 16
_ENCODER = json.JSONEncoder(default=str)


class SortedRuns:
    """Takes rows in any order and returns them by key. A context manager that deletes its file."""

    def __init__(self, *, largest: int = LARGEST_RUN) -> None:
        self._largest = largest
        self._rows: list[tuple[str, int, bytes]] = []
        self._size = self._count = 0
        self._file: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115  (closed by __exit__)
        self._places: list[tuple[int, int]] = []  # first and last byte of each run in the file

    def __enter__(self) -> SortedRuns:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, key: str, *values: Any) -> None:
        """Add one row; values that are not JSON become texts."""
        packed = _ENCODER.encode(values).encode()
        self._count += 1
        self._rows.append((key, self._count, packed))
        self._size += len(packed) + 2 * len(key) + 100
        if self._size >= self._largest:
            self._spill()

    def groups(self) -> Iterator[tuple[str, Iterator[list[Any]]]]:
        """Yield each key in order, with the values of its rows in insertion order."""
        self._rows.sort()
        streams = [self._read(*place) for place in self._places]
        for key, rows in groupby(heapq.merge(*streams, iter(self._rows)), key=itemgetter(0)):
            yield key, (json.loads(packed) for _, _, packed in rows)

    def _spill(self) -> None:
        self._rows.sort()
        begin = self._file.seek(0, 2)
        for key, count, packed in self._rows:
            self._file.write(_ENCODER.encode([key, count]).encode() + b"\t" + packed + b"\n")
        self._places.append((begin, self._file.tell()))
        self._rows, self._size = [], 0

    def _read(self, begin: int, end: int) -> Iterator[tuple[str, int, bytes]]:
        """Read one run; all runs share the file, so each tracks its own offset."""
        rest = b""
        while begin < end:
            self._file.seek(begin)
            block = self._file.read(min(_AT_ONCE, end - begin))
            begin += len(block)
            *lines, rest = (rest + block).split(b"\n")
            for line in lines:
                head, _, packed = line.partition(b"\t")
                key, count = json.loads(head)
                yield key, count, packed
