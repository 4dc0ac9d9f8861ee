"""CSV, NDJSON and JSON files, read from beginning to end."""

from __future__ import annotations

import csv
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from ...model.errors import Invalid
from . import port

_CSV = (".csv", ".tsv")
_JSON = (".ndjson", ".jsonl", ".json")


class _FileTable:
    primary: str | None = None

    def __init__(self, path: Path) -> None:
        self._path = path
        self.name = f"file://{path}"
        self.columns: Sequence[str] = list(dict.fromkeys(name for row in islice(self._rows(), 1000) for name in row))

    async def pages(self, columns: Sequence[str], where: str | None, size: int) -> port.RowPages:
        """Yield all rows in the order of the file."""
        if where:
            raise Invalid("a file takes no condition", field="where", remedy="leave it out, or filter the file first")
        rows = self._rows()
        while page := [tuple(row.get(name) for name in columns) for row in islice(rows, size)]:
            yield page

    async def unclear(self, key: str, where: str | None) -> str | None:
        """Return why this column is not a unique key."""
        return await port.find_unclear(key, self.pages([key], where, 1000))

    async def update(self, key: str, changes: Sequence[port.RowUpdate]) -> set[str]:
        """Files are not written."""
        raise Invalid("a file cannot be written back", field="write_back", remedy="import from a database")

    def _rows(self) -> Iterator[Mapping[str, Any]]:
        try:
            if self._path.suffix.lower() in _JSON:
                yield from _json_rows(self._path.read_bytes())
                return
            with self._path.open(encoding="utf-8-sig", newline="") as file:
                delimiter = max(",;\t|", key=file.readline().count)
                file.seek(0)
                for row in csv.DictReader(file, delimiter=delimiter, strict=True):
                    yield {name: value or None for name, value in row.items() if name is not None}
        except (UnicodeDecodeError, csv.Error, ValueError, OSError) as error:
            remedy = "save it as UTF-8" if isinstance(error, UnicodeDecodeError) else "correct the file"
            raise Invalid(f"{self._path} cannot be read ({error})", field="from", remedy=remedy) from None


def _json_rows(text: bytes) -> Iterator[Mapping[str, Any]]:
    """The objects of a file: one per line, an array, or an object of objects whose names become the column `key`."""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        found = [orjson.loads(line) for line in text.splitlines() if line.strip()]
    if isinstance(found, dict):
        is_table = found and all(isinstance(value, dict) for value in found.values())
        found = [{"key": name, **value} for name, value in found.items()] if is_table else [found]
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise ValueError("write one JSON object per line, or an array of objects")
    yield from found


@asynccontextmanager
async def open_table(url: str, table: str, writable: bool) -> AsyncIterator[port.ExternalTable]:
    """Open a file; its suffix is its format."""
    path = Path(url.removeprefix("file://")).resolve()
    if table:
        raise Invalid("a file has no tables", field="table", remedy="leave --table out")
    if path.suffix.lower() not in _CSV + _JSON:
        remedy = f"use a database URL, or a file: {', '.join(_CSV + _JSON)}"
        raise Invalid(f"unknown file format {path.suffix!r}", field="from", remedy=remedy)
    if not path.is_file():
        raise Invalid(f"there is no file {path}", field="from", remedy="check the path")
    yield _FileTable(path)
