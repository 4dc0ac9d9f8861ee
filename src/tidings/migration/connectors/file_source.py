"""Reads records from files page by page.

A cursor is an offset with the file's size and modification time, so a changed file is detected. A record over
the size limit is skipped without being held in memory.
"""

from __future__ import annotations

import asyncio
import codecs
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO, NamedTuple

from .confined_paths import ConfinedPath, FileSettings
from .port import Attribute, ConnectorError, ErrorKind, Fields, Record, RecordPage, SystemLimits, UnreadableRecord
from .record_validation import InvalidRecord

PAGE_ROWS = 1_000
PAGE_BYTES = 4 << 20

_CHUNK = 1 << 20
_SLICE = 50  # rows parsed between two yields to the event loop: about a millisecond


class FileRow(NamedTuple):
    """The bytes of one record, their position, and a format error if there is one."""

    start: int
    end: int
    line: int
    raw: bytes
    lines: int = 1
    flaw: str | None = None


class FileFormat(ABC):
    """A file format: one record per line and no header, unless a format overrides that."""

    suffix: str

    def __init__(self, settings: FileSettings) -> None:
        self.id, self._most = settings.id, settings.max_record

    def head(self, file: BinaryIO) -> Sequence[str] | None:
        """Skip a byte order mark, and read the header if there is one; the file is then at the first record."""
        if file.read(3) != codecs.BOM_UTF8:
            file.seek(0)
        return None

    def rows(self, file: BinaryIO, line: int) -> Iterator[FileRow]:
        """Read the records from the current position."""
        return read_records(file, self._most, line=line)

    @abstractmethod
    def parse(self, raw: bytes, head: Sequence[str] | None) -> Fields:
        """Parse a record; raises InvalidRecord."""

    def first(self, fields: Fields) -> bytes:
        """Return the beginning of a new file."""
        return b""

    @abstractmethod
    def encode(self, fields: Fields, head: Sequence[str] | None) -> bytes:
        """Encode a record with its line end; raises ConnectorError."""


def path_of_type(path: ConfinedPath, type_: str, suffix: str) -> ConfinedPath:
    """Return the file of a record type: one per type in a folder, or the file itself."""
    found = path.mode
    is_folder = stat.S_ISDIR(found) or not (path.path.suffix or found)
    return path.below(f"{type_.replace('/', '_')}{suffix}") if is_folder else path


class FileSource:
    """Reads records from files."""

    limits = SystemLimits(concurrency=1)

    def __init__(self, kind: str, path: ConfinedPath, form: FileFormat) -> None:
        self.kind, self._path, self._form = kind, path, form

    async def attributes(self, type_: str) -> Sequence[Attribute] | None:
        """Return the columns, if the file has a header."""
        return await asyncio.to_thread(attributes_of, path_of_type(self._path, type_, self._form.suffix), self._form)

    async def count(self, type_: str) -> int | None:
        return None

    async def page(self, type_: str, cursor: str | None) -> RecordPage:
        """Read the next records: bytes in a thread, parsing on the event loop in small slices.

        A thread that parses would hold the interpreter for milliseconds and delay every call in progress.
        """
        rows, head, following = await asyncio.to_thread(self._rows, type_, cursor)
        records: list[Record] = []
        unreadable: list[UnreadableRecord] = []
        for begin in range(0, len(rows), _SLICE):
            for row in rows[begin : begin + _SLICE]:
                self._take(type_, row, head, records, unreadable)
            await asyncio.sleep(0)
        return RecordPage(records, following, unreadable)

    async def close(self) -> None:
        """Do nothing: no file stays open between pages."""

    def _rows(self, type_: str, cursor: str | None) -> tuple[list[FileRow], Sequence[str] | None, str | None]:
        """Return the rows of a page, the header, and the next cursor."""
        with _opened(path_of_type(self._path, type_, self._form.suffix)) as file:
            head = self._form.head(file)
            mark, line = _mark(file), 1 if head is None else 2
            if cursor is not None:
                seen, place, line = _parsed(cursor)
                if seen != mark:
                    reason = "the file was changed while it was being read; put it back or start a new job"
                    raise ConnectorError(ErrorKind.PERMANENT, reason)
                file.seek(place)
            rows: list[FileRow] = []
            begun = file.tell()
            for row in self._form.rows(file, line):
                rows.append(row)
                if len(rows) == PAGE_ROWS or row.end - begun >= PAGE_BYTES:
                    return rows, head, f"{mark}:{row.end}:{row.line + row.lines}"
            return rows, head, None

    def _take(
        self,
        type_: str,
        row: FileRow,
        head: Sequence[str] | None,
        records: list[Record],
        unreadable: list[UnreadableRecord],
    ) -> None:
        at = f"line {row.line}"
        try:
            if row.flaw is not None:
                raise InvalidRecord(row.flaw)
            fields = self._form.parse(row.raw, head)
            records.append(Record(type_, id_of(fields, self._form.id), fields))
        except InvalidRecord as flaw:
            unreadable.append(UnreadableRecord(type_, flaw.id or at, f"{flaw.reason} ({at})", flaw.field))


def attributes_of(path: ConfinedPath, form: FileFormat) -> list[Attribute] | None:
    """Return the columns of a file with a header."""
    with _opened(path) as file:
        head = form.head(file)
    if head is None:
        return None
    return [Attribute(name, "text", required=name == form.id, unique=name == form.id) for name in head]


@contextmanager
def _opened(place: ConfinedPath) -> Iterator[BinaryIO]:
    name = place.path.name
    try:
        file = os.fdopen(place.open(os.O_RDONLY), "rb")
    except FileNotFoundError:
        raise ConnectorError(ErrorKind.NOT_FOUND, f"file {name!r} not found; check the path") from None
    except OSError as error:
        raise ConnectorError(ErrorKind.PERMISSION, f"{name!r} cannot be read: {error.strerror}") from error
    with file:
        yield file


def id_of(fields: Fields, name: str) -> str:
    """Return a record's id; raises InvalidRecord."""
    found = fields.get(name)
    if found is None or isinstance(found, dict | list | bool) or str(found) == "":
        raise InvalidRecord(f"it has no id ({name!r})", name)
    return str(found)


def _mark(file: BinaryIO) -> str:
    found = os.fstat(file.fileno())
    return f"{found.st_size:x}-{found.st_mtime_ns:x}"


def _parsed(cursor: str) -> tuple[str, int, int]:
    mark, _, rest = cursor.partition(":")
    place, _, line = rest.partition(":")
    if not (place.isdigit() and line.isdigit()):
        raise ConnectorError(ErrorKind.PERMANENT, "the cursor is not from this source")
    return mark, int(place), int(line)


def read_records(
    file: BinaryIO, most: int, is_open: Callable[[bytes], bool] | None = None, *, line: int = 1
) -> Iterator[FileRow]:
    """Read records that end with a line, or continue while `is_open` says so; none over `most` bytes.

    Only a line with a quote can end an open record. Oversized records are skipped in pieces. The first
    record is on line number `line`.
    """
    start = file.tell()
    while raw := file.readline(most + 1):
        end, count = start + len(raw), 1
        opened = is_open is not None and is_open(raw)
        if opened or len(raw) > most:
            raw, count = _rest(file, most, bytearray(raw), is_open if opened else None, is_open is not None)
            end = file.tell()
        if len(raw) > most:
            yield FileRow(start, end, line, b"", count, f"it is over {most} bytes")
        elif raw.strip(b"\r\n"):
            yield FileRow(start, end, line, raw, count)
        line, start = line + count, end


def _rest(
    file: BinaryIO, most: int, raw: bytearray, is_open: Callable[[bytes], bool] | None, is_quoted: bool
) -> tuple[bytes, int]:
    """Read the rest of a record that continues or is too long; return its bytes and number of lines."""
    while is_open is not None and len(raw) <= most and (more := file.readline(most + 1 - len(raw))):
        raw += more
        if b'"' in more and not is_open(bytes(raw)):
            break
    passed = _pass_by(file, raw, is_quoted) if len(raw) > most else 0
    return bytes(raw), max(1, raw.count(b"\n") + passed)


def _pass_by(file: BinaryIO, begun: bytearray, is_quoted: bool) -> int:
    """Skip to the end of a record: the next line end, outside of quotes if quotes count."""
    quotes, passed, last = begun.count(b'"'), 0, bytes(begun[-1:])
    while not (last.endswith(b"\n") and not (is_quoted and quotes % 2)):
        last = file.readline(_CHUNK)
        if not last:
            break
        quotes += last.count(b'"')
        passed += last.count(b"\n")
    return passed
