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
    lines: int = 1
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
    is_folder = path.is_dir() or not (path.suffix or path.exists())
    return path / f"{type_.replace('/', '_')}{suffix}" if is_folder else path


class FileSource:
    """Reads records from files."""

    limits = Limits(concurrency=1)

    def __init__(self, kind: str, path: Path, form: Form) -> None:
        self.kind, self._path, self._form = kind, path, form

    async def attributes(self, type_: str) -> Sequence[Attribute] | None:
        """The columns, where the file has a head."""
        return await asyncio.to_thread(
            _attributes, place_of(self._path, type_, self._form.suffix), self._form
        )

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
                    return Page(records, f"{mark}:{row.end}:{row.line + row.lines}", spoiled)
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
        book = self._books.setdefault(path, _Book(path, type_, self._form))
        if book.type != type_:
            reason = f"{path.name} has {book.type} in it already; name a folder as the path"
            raise Trouble(Failure.VALIDATION, reason, field="path")
        return book


class _Book:
    """One file that is written: where each key stands, as far as the file has been seen."""

    def __init__(self, path: Path, type_: str, form: Form) -> None:
        self.type = type_
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
            self._path.parent.mkdir(parents=True, exist_ok=True)
            file = os.fdopen(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666), "r+b")
        except OSError as error:
            raise Trouble(
                Failure.PERMISSION, f"{self._path.name} cannot be written: {error.strerror}"
            ) from error
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self._catch_up(file)
            yield file

    def _catch_up(self, file: BinaryIO) -> None:
        size = file.seek(0, os.SEEK_END)
        if size < self._seen:  # somebody has begun it anew
            self._seen, self._places, self._head = 0, {}, None
        if size == self._seen:
            return
        size = self._mended(file, size)
        file.seek(0)
        if size:
            self._head = self._form.head(file)
        file.seek(max(self._seen, file.tell()))
        for row in self._form.rows(file, 1):
            self._note(file, row)
        self._seen = size

    def _note(self, file: BinaryIO, row: Row) -> None:
        try:
            key = _id(self._form.parse(row.raw, self._head), self._form.id)
        except Flaw as flaw:
            reason = f"{self._path.name} has a record that cannot be read: {flaw.reason}; mend it first"
            raise Trouble(Failure.PERMANENT, reason) from None
        before = self._places.get(key)
        self._places[key] = (row.start, row.end)
        if before is not None:
            _blank(file, *before)
            file.seek(row.end)

    def _mended(self, file: BinaryIO, size: int) -> int:
        """A last line without its end: a whole record gets one, one that broke off is cut away."""
        end = _last_line_end(file, size)
        if end == size:
            return size
        file.seek(0)
        try:
            if end:
                self._form.parse(_bytes(file, end, size), self._form.head(file))
        except Flaw:
            file.truncate(end)
            return end
        file.seek(size)
        file.write(b"\n")
        file.flush()
        return size + 1


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


def _last_line_end(file: BinaryIO, size: int) -> int:
    end = size
    while end:
        start = max(0, end - _CHUNK)
        found = _bytes(file, start, end).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def lines(file: BinaryIO, most: int, is_open: Callable[[bytes], bool] | None = None) -> Iterator[Row]:
    """Records that end with a line, or go on over it while `is_open` says so; none of them over `most` bytes.

    Only a line with a quote in it can end what is open. What is over the limit is passed by in pieces.
    """
    number, start = 1, file.tell()
    while first := file.readline(most + 1):
        raw = bytearray(first)
        opened = is_open is not None and is_open(first)
        while opened and len(raw) <= most and (more := file.readline(most + 1 - len(raw))):
            raw += more
            opened = is_open is not None and (b'"' not in more or is_open(bytes(raw)))
        is_over = len(raw) > most
        count = raw.count(b"\n") + (_pass_by(file, raw, is_open is not None) if is_over else 0)
        end = file.tell()
        if is_over:
            yield Row(start, end, number, b"", max(count, 1), f"it is over {most} bytes")
        elif raw.strip(b"\r\n"):
            yield Row(start, end, number, bytes(raw), max(count, 1))
        number, start = number + max(count, 1), end


def _pass_by(file: BinaryIO, begun: bytearray, is_quoted: bool) -> int:
    """To the end of a record: the first line end, or where quotes count, the first outside of them."""
    quotes, passed, last = begun.count(b'"'), 0, bytes(begun[-1:])
    while not (last.endswith(b"\n") and not (is_quoted and quotes % 2)):
        last = file.readline(_CHUNK)
        if not last:
            break
        quotes += last.count(b'"')
        passed += last.count(b"\n")
    return passed
