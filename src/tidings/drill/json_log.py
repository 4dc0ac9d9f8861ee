"""Append-only JSON logs that survive a kill: one write per batch.

The kernel may cut a write short at a page boundary when the process is killed. Each batch therefore begins on
a new line, and readers skip a torn one: a line is written before its call is made.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson


class JsonLog:
    """A log to append to; several processes may share one."""

    def __init__(self, path: Path | str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, *lines: Mapping[str, Any]) -> None:
        """Append lines with one write."""
        os.write(self._file, b"\n" + b"".join(orjson.dumps(line) + b"\n" for line in lines))

    def close(self) -> None:
        os.close(self._file)


def read_log(path: Path) -> Iterable[dict[str, Any]]:
    """Return the complete lines so far; an unfinished one is left for later, a torn one is skipped."""
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    return (orjson.loads(line) for line in whole.splitlines() if line.endswith(b"}"))


class LogTail:
    """Counts the lines with a mark in a growing log, reading each once."""

    def __init__(self, path: Path, mark: bytes = b"}\n") -> None:
        self._path, self._mark = path, mark
        self._read_up_to = 0
        self._count = 0

    def count(self) -> int:
        """Return the count so far."""
        with self._path.open("rb") as log:
            log.seek(self._read_up_to)
            whole, _, _ = log.read().rpartition(b"\n")
        if whole:
            whole += b"\n"
            self._count += whole.count(self._mark)
            self._read_up_to += len(whole)
        return self._count
