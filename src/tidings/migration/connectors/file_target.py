"""Writes records to files, once per key.

Lines are appended under a lock with one write each and fsynced before they count. A line torn by a power cut
was never acknowledged and is removed. A changed record is appended and its old line blanked; a crash between
the two leaves both, and the later one wins.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO

from ...wire.file_locks import lock_file
from .confined_paths import ConfinedPath, FileSettings, confined_path
from .file_source import FileFormat, FileRow, FileSource, attributes_of, id_of, path_of_type
from .options import Connector, ConnectorReach, OptionReader, count, text
from .port import (
    Attribute,
    ConnectorError,
    ErrorKind,
    Fields,
    SystemLimits,
    TargetRecord,
    WriteStrategy,
    all_pages,
    invalid,
)
from .record_validation import InvalidRecord

BULK = 500

_CHUNK = 1 << 20


class FileTarget:
    """Writes records to files by key."""

    limits = SystemLimits(concurrency=1, bulk=BULK)

    def __init__(self, kind: str, path: ConfinedPath, form: FileFormat) -> None:
        self.kind, self._path, self._form = kind, path, form
        self._files: dict[ConfinedPath, _RecordFile] = {}

    def strategy(self, type_: str) -> WriteStrategy:
        return WriteStrategy.UPSERT

    async def attributes(self, type_: str) -> Sequence[Attribute] | None:
        """Return the columns of an existing file."""
        path = path_of_type(self._path, type_, self._form.suffix)
        return await asyncio.to_thread(attributes_of, path, self._form) if stat.S_ISREG(path.mode) else None

    async def find(self, type_: str, key: str, fields: Fields) -> Sequence[TargetRecord]:
        found = await asyncio.to_thread(self._file_of(type_).find, key)
        return [] if found is None else [TargetRecord(key, found)]

    async def write(self, type_: str, key: str, fields: Fields, known: str | None) -> TargetRecord:
        (written,) = await self.write_many(type_, [(key, fields, known)])
        if isinstance(written, ConnectorError):
            raise written
        return written

    async def write_many(
        self, type_: str, records: Sequence[tuple[str, Fields, str | None]]
    ) -> Sequence[TargetRecord | ConnectorError]:
        """Write many records with one fsync."""
        return await asyncio.to_thread(self._file_of(type_).put, [(key, fields) for key, fields, _ in records])

    async def erase(self, type_: str, id_: str) -> None:
        """Blank the record's line."""
        await asyncio.to_thread(self._file_of(type_).drop, id_)

    async def read_all(self, type_: str) -> AsyncIterator[tuple[str, TargetRecord]]:
        """Yield every record in file order."""
        if stat.S_ISREG(path_of_type(self._path, type_, self._form.suffix).mode):
            async for page in all_pages(FileSource(self.kind, self._path, self._form), type_):
                for record in page.records:
                    yield record.id, TargetRecord(record.id, record.fields)

    async def close(self) -> None:
        """Drop the cached positions."""
        self._files.clear()

    def _file_of(self, type_: str) -> _RecordFile:
        path = path_of_type(self._path, type_, self._form.suffix)
        record_file = self._files.setdefault(path, _RecordFile(path, type_, self._form))
        if record_file.type != type_:
            reason = f"{path.path.name} already holds {record_file.type}; use a folder as the path"
            raise invalid(reason, "path")
        return record_file


class _RecordFile:
    """One target file, with the known position of each key."""

    def __init__(self, place: ConfinedPath, type_: str, form: FileFormat) -> None:
        self.type = type_
        self._place, self._name, self._form = place, place.path.name, form
        self._places: dict[str, tuple[int, int]] = {}
        self._seen = 0
        self._head: Sequence[str] | None = None

    def find(self, key: str) -> Fields | None:
        with self._locked() as file:
            return self._at(file, key)

    def drop(self, key: str) -> None:
        """Blank a record."""
        with self._locked() as file:
            place = self._places.pop(key, None)
            if place is not None:
                _blank(file, *place)
                os.fsync(file.fileno())

    def put(self, records: Sequence[tuple[str, Fields]]) -> list[TargetRecord | ConnectorError]:
        """Write records that are new or differ."""
        with self._locked() as file:
            results: list[TargetRecord | ConnectorError] = []
            for key, fields in records:
                try:
                    results.append(self._put(file, key, self._named(key, fields)))
                except ConnectorError as error:
                    results.append(error)
            file.flush()
            os.fsync(file.fileno())
            return results

    def _put(self, file: BinaryIO, key: str, fields: Fields) -> TargetRecord:
        begins = b"" if self._seen else self._form.first(fields)
        if begins:
            self._append(file, begins)
            file.seek(0)
            self._head = self._form.head(file)
        raw = self._form.encode(fields, self._head)
        before = self._places.get(key)
        if before is not None and _bytes(file, *before) == raw:
            return TargetRecord(key, fields)
        start = self._append(file, raw)
        self._places[key] = (start, start + len(raw))
        if before is not None:
            _blank(file, *before)
        return TargetRecord(key, fields)

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
            raise invalid(f"{name!r} is not the record's key; use another column as id", field=name)
        return {name: key, **fields}

    def _at(self, file: BinaryIO, key: str) -> Fields | None:
        place = self._places.get(key)
        return None if place is None else self._form.parse(_bytes(file, *place), self._head)

    @contextmanager
    def _locked(self) -> Iterator[BinaryIO]:
        """Open and lock the file; catch up with what others have written."""
        try:
            file = os.fdopen(self._place.open(os.O_RDWR | os.O_CREAT), "r+b")
        except OSError as error:
            reason = f"{self._name} cannot be written: {error.strerror}"
            raise ConnectorError(ErrorKind.PERMISSION, reason) from error
        with file:
            lock_file(file.fileno(), wait=True)
            self._catch_up(file)
            yield file

    def _catch_up(self, file: BinaryIO) -> None:
        size = file.seek(0, os.SEEK_END)
        if size < self._seen:  # the file was replaced
            self._seen, self._places, self._head = 0, {}, None
        if size == self._seen:
            return
        size = self._repair_last_line(file, size)
        file.seek(0)
        if size:
            self._head = self._form.head(file)
        file.seek(max(self._seen, file.tell()))
        for row in self._form.rows(file, 1):
            self._note(file, row)
        self._seen = size

    def _note(self, file: BinaryIO, row: FileRow) -> None:
        try:
            key = id_of(self._form.parse(row.raw, self._head), self._form.id)
        except InvalidRecord as flaw:
            reason = f"{self._name} has an unreadable record: {flaw.reason}; fix it first"
            raise ConnectorError(ErrorKind.PERMANENT, reason) from None
        before = self._places.get(key)
        self._places[key] = (row.start, row.end)
        if before is not None:
            _blank(file, *before)
            file.seek(row.end)

    def _repair_last_line(self, file: BinaryIO, size: int) -> int:
        """Fix a last line without line end: complete a whole record, remove a torn one."""
        end = _last_line_end(file, size)
        if end == size:
            return size
        file.seek(0)
        try:
            if end:
                self._form.parse(_bytes(file, end, size), self._form.head(file))
        except InvalidRecord:
            file.truncate(end)
            return end
        file.seek(size)
        file.write(b"\n")
        file.flush()
        return size + 1


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


def file_connector(form: type[FileFormat], settings: type[FileSettings], **options: OptionReader) -> Connector:
    """Return the connector of a file format; `options` are those beyond the settings of all files."""
    kind = form.suffix.removeprefix(".")
    return Connector(
        settings=settings,
        options={"path": text, "id": text, **options, "max_record": count(1_024, 64 << 20)},
        source=lambda given, _: FileSource(kind, confined_path(given), form(given)),
        target=lambda given, _: FileTarget(kind, confined_path(given), form(given)),
        judge=confined_path,
        reach=ConnectorReach.FOLDER,
    )
