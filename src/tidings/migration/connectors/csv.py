"""CSV files with a header: one record per row, as source and as target. Every value is a text."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import orjson

from .confined_paths import FileSettings
from .file_source import FileFormat, FileRow, read_records
from .file_target import file_connector
from .options import one_of
from .port import Fields, invalid
from .record_validation import InvalidRecord, check_texts

_NOT_CLOSED = "unexpected end of data"


@dataclass(frozen=True, slots=True)
class CsvSettings(FileSettings):
    """The settings of CSV files."""

    delimiter: str = ","
    encoding: str = "utf-8"


class CsvFormat(FileFormat):
    """Rows below a header. A quoted value may span lines."""

    suffix = ".csv"

    def __init__(self, settings: CsvSettings) -> None:
        super().__init__(settings)
        self._delimiter, self._encoding = settings.delimiter, settings.encoding

    def head(self, file: BinaryIO) -> Sequence[str] | None:
        """Read the header; column names must be unique and include the id column."""
        super().head(file)
        row = next(self.rows(file, 1), None)
        if row is None:
            raise invalid("the file is empty: the first line must name the columns")
        try:
            names = [name.strip() for name in self._cells(row.raw)]
        except InvalidRecord as flaw:
            raise invalid(f"the first line cannot be read: {flaw.reason}") from None
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise invalid(f"duplicate column {twice!r}; rename one", twice)
        if self.id not in names:
            known = ", ".join(names[:20])[:200]
            reason = f"missing id column {self.id!r}; columns: {known}"
            raise invalid(reason, self.id)
        file.seek(row.end)
        return names

    def rows(self, file: BinaryIO, line: int) -> Iterator[FileRow]:
        return read_records(file, self._most, self._is_open, line=line)

    def parse(self, raw: bytes, head: Sequence[str] | None) -> Fields:
        """Parse one row; it must have one value per column."""
        cells, names = self._cells(raw), head or ()
        if len(cells) != len(names):
            raise InvalidRecord(f"it has {len(cells)} values for {len(names)} columns")
        found = dict(zip(names, cells, strict=True))
        if b"\x00" in raw:
            check_texts(found, self.id)
        return found

    def first(self, fields: Fields) -> bytes:
        """Return the header: the columns of the first record."""
        return self._encode_row(list(fields))

    def encode(self, fields: Fields, head: Sequence[str] | None) -> bytes:
        columns = head or ()
        unknown = next((name for name in fields if name not in columns), None)
        if unknown is not None:
            raise invalid(f"the file has no column {unknown!r}", unknown)
        return self._encode_row([_cell(fields.get(name)) for name in columns])

    def _encode_row(self, cells: Sequence[str]) -> bytes:
        made = io.StringIO(newline="")
        csv.writer(made, delimiter=self._delimiter, lineterminator="\r\n").writerow(cells)
        try:
            return made.getvalue().encode(self._encoding)
        except UnicodeEncodeError as error:
            sign = error.object[error.start]
            raise invalid(f"{sign!r} cannot be written in {self._encoding}") from None

    def _cells(self, raw: bytes) -> list[str]:
        try:
            return self._read(raw)
        except UnicodeDecodeError:
            raise InvalidRecord(f"it is not {self._encoding}") from None
        except csv.Error as error:
            not_closed = str(error) == _NOT_CLOSED
            raise InvalidRecord("a quote is never closed" if not_closed else str(error)) from None

    def _is_open(self, raw: bytes) -> bool:
        """Return whether the row ends within quotes. Only a line with a quote can open or close them."""
        if b'"' not in raw:
            return False
        try:
            self._read(raw)
        except (csv.Error, UnicodeDecodeError) as error:
            return str(error) == _NOT_CLOSED
        return False

    def _read(self, raw: bytes) -> list[str]:
        if csv.field_size_limit() < self._most:
            csv.field_size_limit(self._most)
        decoded = io.StringIO(raw.decode(self._encoding), newline="")
        return next(csv.reader(decoded, delimiter=self._delimiter, strict=True), [])


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _delimiter(value: object) -> str:
    if not isinstance(value, str) or len(value) != 1 or value in '"\r\n':
        raise ValueError('must be one character, such as ";" or a tab')
    return value


CONNECTOR = file_connector(
    CsvFormat, CsvSettings, delimiter=_delimiter, encoding=one_of("utf-8", "latin-1", "cp1252", "ascii")
)
