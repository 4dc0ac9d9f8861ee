"""External sort: sorts more rows than fit in memory, in a temporary database."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

LARGEST_RUN = 8_000_000  # bytes of rows in memory
_ENCODER = json.JSONEncoder(default=str)


class SortedRuns:
    """Takes rows in any order and returns them by key. A context manager that deletes its file."""

    def __init__(self, *, largest: int = LARGEST_RUN) -> None:
        self._rows = sqlite3.connect("")  # in a file that is deleted when it is closed
        self._rows.execute("pragma journal_mode = off")
        self._rows.execute(f"pragma cache_size = -{max(1, largest // 1000)}")
        self._rows.execute("create table sorted (key blob, value text)")

    def __enter__(self) -> SortedRuns:
        return self

    def __exit__(self, *_: object) -> None:
        self._rows.close()

    def add(self, key: str, *values: Any) -> None:
        """Add one row; values that are not JSON become texts."""
        row = (key.encode(errors="surrogatepass"), _ENCODER.encode(values))
        self._rows.execute("insert into sorted values (?, ?)", row)

    def groups(self) -> Iterator[tuple[str, Iterator[list[Any]]]]:
        """Yield each key in order, with the values of its rows in insertion order."""
        found = self._rows.execute("select key, value from sorted order by key, rowid")
        for key, rows in groupby(found, key=itemgetter(0)):
            yield key.decode(errors="surrogatepass"), (json.loads(value) for _, value in rows)
