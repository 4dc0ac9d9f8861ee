"""Files of records, one after the other: read in pages by place, written so that a key is there once.

Reading: a cursor is a place in the file together with the file's size and time of change, so that a file
which changed underneath is noticed. A record over the limit is skipped without being held in memory.

Writing: lines are appended under a lock, in one write each, and forced to the disk before they count. A line
that broke off when the power failed was never acknowledged and is cut away. A record that changes is appended
anew, and its old line becomes empty lines: a crash between the two leaves both, and the later one counts.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

from ..words import Attribute, Failure, Fields, Limits, Page, Record, Spoiled, Strategy, Trouble, Written

PAGE_ROWS = 1_000
PAGE_BYTES = 4 << 20
BULK = 500

_CHUNK = 1 << 20


class Row(NamedTuple):
    """One record's bytes, where they stand, and what is wrong with them as far as their form shows."""

    start: int
    end: int
    line: int
    raw: bytes
    flaw: str | None = None


class Form(Protocol):
    """What makes one kind of file differ from another."""

    suffix: str
    id: str  # the column or field that names a record

    def head(self, file: BinaryIO) -> Sequence[str] | None:
        """Read what stands before the records, if anything does; the file is then at the first record."""

    def rows(self, file: BinaryIO, line: int) -> Iterator[Row]:
        """The records from where the file is."""

    def parse(self, raw: bytes, head: Sequence[str] | None) -> Fields:
        """A record; raises Flaw."""

    def first(self, fields: Fields) -> bytes:
        """What a new file begins with."""

    def spell(self, fields: Fields, head: Sequence[str] | None) -> bytes:
        """A record as bytes with its line end; raises Trouble."""


class Flaw(Exception):
    """A record that cannot be read: why, the field, and its id where that could be read."""

    def __init__(self, reason: str, field: str | None = None, id: str | None = None) -> None:
        super().__init__(reason)
        self.reason, self.field, self.id = reason, field, id


def place_of(path: Path, type_: str, suffix: str) -> Path:
    """A folder has one file per record type; a file serves whatever type is asked for."""
    return path / f"{type_}{suffix}" if path.is_dir() and "/" not in type_ else path


class FileSource:
    """Reads records from files."""

    limits = Limits(concurrency=1)

    def __init__(self, kind: str, path: Path, form: Form) -> None:
        self.kind, self._path, self._form = kind, path, form

    async def attributes(self, type_: str) -> Sequence[Attribute] | None:
        """The columns, where the file has a head."""
        return await asyncio.to_thread(_attributes, place_of(self._path, type_, self._form.suffix), self._form)

    async def count(self, type_: str) -> int | None:
        """Nobody knows before reading."""
        return None

    async def page(self, type_: str, cursor: str | None) -> Page:
        """The next records; the file is read off the event loop."""
        return await asyncio.to_thread(self._page, type_, cursor)

    async def close(self) -> None:
        """Nothing is open between two pages."""

    def _page(self, type_: str, cursor: str | None) -> Page:
        with _opened(place_of(self._path, type_, self._form.suffix)) as file:
            head = self._form.head(file)
            mark, line = _mark(file), 1 if head is None else 2
            if cursor is not None:
                seen, place, line = _parsed(cursor)
                if seen != mark:
                    raise Trouble(
                        Failure.PERMANENT,
                        "the file was changed while it was being read; put it back or start a new job",
                    )
                file.seek(place)
            records: list[Record] = []
            spoiled: list[Spoiled] = []
            begun = file.tell()
            for row in self._form.rows(file, line):
                self._take(type_, row, head, records, spoiled)
                if len(records) + len(spoiled) == PAGE_ROWS or row.end - begun >= PAGE_BYTES:
                    lines = row.raw.count(b"\n") if row.flaw is None else 1
                    return Page(records, f"{mark}:{row.end}:{row.line + lines}", spoiled)
            return Page(records, None, spoiled)

    def _take(
        self,
        type_: str,
        row: Row,
        head: Sequence[str] | None,
        records: list[Record],
        spoiled: list[Spoiled],
    ) -> None:
        place = f"line {row.line}"
        try:
            if row.flaw is not None:
                raise Flaw(row.flaw)
            fields = self._form.parse(row.raw, head)
            records.append(Record(type_, _id(fields, self._form.id), fields))
        except Flaw as flaw:
            spoiled.append(Spoiled(type_, flaw.id or place, f"{flaw.reason} ({place})", flaw.field))


class FileTarget:
    """Writes records into files, by their key."""

    limits = Limits(concurrency=1, bulk=BULK)

    def __init__(self, kind: str, path: Path, form: Form) -> None:
        self.kind, self._path, self._form = kind, path, form
        self._books: dict[Path, _Book] = {}

    def strategy(self, type_: str) -> Strategy:
        """By the key, which stands in the file."""
        return Strategy.UPSERT

    async def attributes(self, type_: str) -> Sequence[Attribute] | None:
        """The columns of a file that is there already."""
        path = place_of(self._path, type_, self._form.suffix)
        return await asyncio.to_thread(_attributes, path, self._form) if path.is_file() else None

    async def find(self, type_: str, key: str, fields: Fields) -> Sequence[Written]:
        """The record with this key, if it is there."""
        found = await asyncio.to_thread(self._book(type_).find, key)
        return [] if found is None else [Written(key, found)]

    async def write(self, type_: str, key: str, fields: Fields, known: str | None) -> Written:
        """Write one."""
        (written,) = await self.write_many(type_, [(key, fields, known)])
        if isinstance(written, Trouble):
            raise written
        return written

    async def write_many(
        self, type_: str, records: Sequence[tuple[str, Fields, str | None]]
    ) -> Sequence[Written | Trouble]:
        """Write many, with one wait for the disk."""
        return await asyncio.to_thread(self._book(type_).put, [(key, fields) for key, fields, _ in records])

    async def read_all(self, type_: str) -> AsyncIterator[tuple[str, Written]]:
        """Every record in the order of the file."""
        source, cursor = FileSource(self.kind, self._path, self._form), None
        if not place_of(self._path, type_, self._form.suffix).is_file():
            return
        while True:
            page = await source.page(type_, cursor)
            for record in page.records:
                yield record.id, Written(record.id, record.fields)
            cursor = page.cursor
            if cursor is None:
                return

    async def close(self) -> None:
        """Forget where the keys stand."""
        self._books.clear()

    def _book(self, type_: str) -> _Book:
        path = place_of(self._path, type_, self._form.suffix)
        return self._books.setdefault(path, _Book(path, self._form))


class _Book:
    """One file that is written: where each key stands, as far as the file has been seen."""

    def __init__(self, path: Path, form: Form) -> None:
        self._path, self._form = path, form
        self._places: dict[str, tuple[int, int]] = {}
        self._seen = 0
        self._head: Sequence[str] | None = None

    def find(self, key: str) -> Fields | None:
        """A record by its key."""
        with self._locked() as file:
            return self._at(file, key)

    def put(self, records: Sequence[tuple[str, Fields]]) -> list[Written | Trouble]:
        """Write records that are not there yet, or differ."""
        with self._locked() as file:
            results: list[Written | Trouble] = []
            for key, fields in records:
                try:
                    results.append(self._put(file, key, self._named(key, fields)))
                except Trouble as trouble:
                    results.append(trouble)
            file.flush()
            os.fsync(file.fileno())
            return results

    def _put(self, file: BinaryIO, key: str, fields: Fields) -> Written:
        begins = b"" if self._seen else self._form.first(fields)
        if begins:
            self._append(file, begins)
            file.seek(0)
            self._head = self._form.head(file)
        raw = self._form.spell(fields, self._head)
        before = self._places.get(key)
        if before is not None and _bytes(file, *before) == raw:
            return Written(key, fields)
        start = self._append(file, raw)
        self._places[key] = (start, start + len(raw))
        if before is not None:
            _blank(file, *before)
        return Written(key, fields)

    def _append(self, file: BinaryIO, raw: bytes) -> int:
        start = file.seek(0, os.SEEK_END)
        file.write(raw)
        file.flush()
        self._seen = start + len(raw)
        return start

    def _named(self, key: str, fields: Fields) -> Fields:
        name = self._form.id
        given = fields.get(name)
        if given is not None and str(given) != key:
            raise Trouble(
                Failure.VALIDATION, f"{name!r} is not the record's key; name another column as id", field=name
            )
        return {name: key, **fields}

    def _at(self, file: BinaryIO, key: str) -> Fields | None:
        place = self._places.get(key)
        return None if place is None else self._form.parse(_bytes(file, *place), self._head)

    @contextmanager
    def _locked(self) -> Iterator[BinaryIO]:
        """The file, ours alone, with everything seen that others have written meanwhile."""
        try:
            file = os.fdopen(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666), "r+b")
        except OSError as error:
            raise Trouble(Failure.PERMISSION, f"{self._path.name} cannot be written: {error.strerror}") from error
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self._catch_up(file)
            yield file

    def _catch_up(self, file: BinaryIO) -> None:
        size = _whole(file)
        if size < self._seen:  # somebody has begun it anew
            self._seen, self._places, self._head = 0, {}, None
        if size == self._seen:
            return
        file.seek(0)
        self._head = self._form.head(file)
        file.seek(max(self._seen, file.tell()))
        for row in self._form.rows(file, 1):
            try:
                key = _id(self._form.parse(row.raw, self._head), self._form.id)
            except Flaw:
                continue  # not written by us, and nobody's key
            before = self._places.get(key)
            self._places[key] = (row.start, row.end)
            if before is not None:
                _blank(file, *before)
                file.seek(row.end)
        self._seen = size


def _attributes(path: Path, form: Form) -> list[Attribute] | None:
    with _opened(path) as file:
        head = form.head(file)
    if head is None:
        return None
    return [Attribute(name, "text", required=name == form.id, unique=name == form.id) for name in head]


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise Trouble(Failure.NOT_FOUND, f"there is no file {path.name!r}; check the path") from None
    except OSError as error:
        raise Trouble(Failure.PERMISSION, f"{path.name!r} cannot be read: {error.strerror}") from error
    with file:
        yield file


def _id(fields: Fields, name: str) -> str:
    found = fields.get(name)
    if found is None or isinstance(found, dict | list | bool) or str(found) == "":
        raise Flaw(f"it has no {name!r}, which names a record", name)
    return str(found)


def _mark(file: BinaryIO) -> str:
    found = os.fstat(file.fileno())
    return f"{found.st_size:x}-{found.st_mtime_ns:x}"


def _parsed(cursor: str) -> tuple[str, int, int]:
    mark, _, rest = cursor.partition(":")
    place, _, line = rest.partition(":")
    if not (place.isdigit() and line.isdigit()):
        raise Trouble(Failure.PERMANENT, "the cursor was not made by this source")
    return mark, int(place), int(line)


def _bytes(file: BinaryIO, start: int, end: int) -> bytes:
    file.seek(start)
    return file.read(end - start)


def _blank(file: BinaryIO, start: int, end: int) -> None:
    file.seek(start)
    file.write(b"\n" * (end - start))
    file.flush()


def _whole(file: BinaryIO) -> int:
    """The file's size, once a last line that broke off is cut away."""
    size = file.seek(0, os.SEEK_END)
    end = size
    while end:
        start = max(0, end - _CHUNK)
        found = _bytes(file, start, end).rfind(b"\n")
        if found >= 0:
            end = start + found + 1
            break
        end = start
    if end < size:
        file.truncate(end)
    return end


def lines(file: BinaryIO, most: int, is_open: Callable[[bytes], bool] = lambda _: False) -> Iterator[Row]:
    """Records that end with a line, or go on over it while `is_open` says so; none of them over `most` bytes.

    What is over is passed by in pieces: its quotes are counted, since they tell whether a line end ends it.
    """
    number, start = 1, file.tell()
    while raw := file.readline(most + 1):
        while len(raw) <= most and raw.endswith(b"\n") and is_open(raw):
            more = file.readline(most + 1 - len(raw))
            if not more:
                break
            raw += more
        flaw = None
        count = raw.count(b"\n")
        if len(raw) > most:
            count += _pass_by(file, raw)
            flaw = f"it is over {most} bytes"
        end = file.tell()
        if flaw or raw.strip(b"\r\n"):
            yield Row(start, end, number, b"" if flaw else raw, flaw)
        number, start = number + max(count, 1), end


def _pass_by(file: BinaryIO, begun: bytes) -> int:
    quotes, passed, last = begun.count(b'"'), 0, begun
    while not (last.endswith(b"\n") and quotes % 2 == 0):
        last = file.readline(_CHUNK)
        if not last:
            break
        quotes += last.count(b'"')
        passed += last.count(b"\n")
    return passed
