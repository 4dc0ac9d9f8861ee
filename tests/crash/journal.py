"""Logs of the crash drills: JSON lines, appended with a single write each, so that no death tears one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson


class Journal:
    """A log with one owner."""

    def __init__(self, path: Path | str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, *lines: Mapping[str, Any]) -> None:
        """Append these at once."""
        os.write(self._file, b"".join(orjson.dumps(line) + b"\n" for line in lines))

    def close(self) -> None:
        """Nothing more will be written."""
        os.close(self._file)


def lines(path: Path) -> Iterable[dict[str, Any]]:
    """What has been written so far; a line that is just being written is left for later."""
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    return map(orjson.loads, whole.splitlines())
