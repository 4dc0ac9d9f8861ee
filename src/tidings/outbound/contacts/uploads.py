"""Uploads: rows out of a stream of bytes, CSV or NDJSON, memory flat however long it is.

Each row stands alone: a bad one comes out as an error in its place, so that whoever reads may go on or give
up. What spoils the whole upload (no header, too many rows, too many bytes) is raised. Rows are numbered as
people see them: a line of NDJSON by its line, a row of CSV as in a spreadsheet, where the header is row 1.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import AsyncIterator
from tempfile import SpooledTemporaryFile
from typing import Any, Literal

import orjson

from ...model.errors import Invalid, TidingsError, TooLarge

UploadFormat = Literal["csv", "ndjson"]
NumberedRow = tuple[int, dict[str, Any] | TidingsError]

MAX_UPLOAD_BYTES = 1 << 30
ADDRESS_COLUMN = "address"  # the name of what a line of NDJSON is that is only a text
_FORMS: dict[str, UploadFormat] = {
    "text/csv": "csv",
    "application/csv": "csv",
    ".csv": "csv",
    ".tsv": "csv",
    "text/tab-separated-values": "csv",
    "application/x-ndjson": "ndjson",
    "application/ndjson": "ndjson",
    "application/jsonl": "ndjson",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
}
_PIECE = 1 << 16
_DELIMITERS = (b",", b";", b"\t")
_BOM = b"\xef\xbb\xbf"
_QUOTED = re.compile(rb'"[^"]*"?')
_SPACES = re.compile(r"\s+")
_SAVE_AS = "save it as UTF-8"


def upload_format(kind: str) -> UploadFormat:
    """The form that a media type or a file's name stands for."""
    said = kind.partition(";")[0].strip().lower()
    form = _FORMS.get(said) or _FORMS.get("." + said.rpartition(".")[2])
    if form is None:
        raise Invalid(
            f"{kind[:60] or 'nothing'!r} is neither CSV nor NDJSON",
            field="content-type" if "/" in kind or not kind else "file",
            remedy="use text/csv (.csv) or application/x-ndjson (.ndjson)",
        )
    return form


async def read_rows(
    pieces: AsyncIterator[bytes],
    form: UploadFormat,
    *,
    largest: int,
    most_lines: int,
    most_bytes: int = MAX_UPLOAD_BYTES,
    exact: bool = False,
) -> AsyncIterator[NumberedRow]:
    """Numbered rows out of pieces of any size; `largest` is for one row, in bytes.

    With `exact` a column is called what it is called.
    """
    if form == "ndjson":
        numbered = read_lines(pieces, largest=largest, most_lines=most_lines, most_bytes=most_bytes)
        async for number, said in numbered:
            yield number, said if isinstance(said, TidingsError) else _object(said)
        return
    table = _CsvReader(largest, most_lines, exact=exact)
    async for some in _split(pieces, largest, most_bytes):
        for line in some:
            if (row := table.take(line)) is not None:
                yield row
    if (row := table.end()) is not None:
        yield row


async def read_lines(
    pieces: AsyncIterator[bytes], *, largest: int, most_lines: int, most_bytes: int = MAX_UPLOAD_BYTES
) -> AsyncIterator[tuple[int, bytes | TidingsError]]:
    """Numbered lines; empty ones are passed over. One that is too long is told and never held in memory."""
    number = 0
    async for some in _split(pieces, largest, most_bytes):
        for line in some:
            number += 1
            if number > most_lines:
                raise _too_many(most_lines)
            if line is None:
                yield number, _too_long(largest)
            elif line and not line.isspace():
                yield number, line


async def _split(
    pieces: AsyncIterator[bytes], largest: int, most_bytes: int
) -> AsyncIterator[list[bytes | None]]:
    """Whole lines without their ends, as they come; None stands for one that is too long."""
    taken, is_first, is_skipping = 0, True, False
    held = bytearray()
    async for piece in pieces:
        taken += len(piece)
        if taken > most_bytes:
            raise TooLarge(f"there are more than {most_bytes:,} bytes", remedy="split the upload")
        first, *more = piece.split(b"\n")
        if not is_skipping:
            held += first
        whole: list[bytes | None] = []
        if more:
            whole = [bytes(held), *more[:-1]]
            whole = [line if len(line) <= largest else None for line in whole if line is not None]
            if is_skipping:  # this was the end of the one that was too long, and it has been told
                whole, is_skipping = whole[1:], False
            held = bytearray(more[-1])
        if len(held) > largest:
            whole.append(None)
            is_skipping = True
            held.clear()
        if whole:
            if is_first and whole[0] is not None:
                whole[0] = whole[0].removeprefix(_BOM)
            is_first = False
            yield whole
    if held and not is_skipping:
        yield [bytes(held).removeprefix(_BOM) if is_first else bytes(held)]


class RewindableStream:
    """A stream that can be read twice: what comes is put aside, in a file without a name if it is long."""

    def __init__(self, pieces: AsyncIterator[bytes]) -> None:
        self._pieces = pieces
        self._file = SpooledTemporaryFile(max_size=1 << 20)  # noqa: SIM115  (closed with this)
        self._is_over = False

    async def pieces(self) -> AsyncIterator[bytes]:
        """The bytes; the second time they come out of the file."""
        if not self._is_over:
            async for piece in self._pieces:
                self._file.write(piece)
                yield piece
            self._is_over = True
            return
        self._file.seek(0)
        while piece := self._file.read(_PIECE):
            yield piece

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


# -- NDJSON


def _object(line: bytes) -> dict[str, Any] | TidingsError:
    remedy = 'write one object a line: {"address": "ada"}, or only "ada"'
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        return Invalid(f"this is not JSON: {error.msg} at character {error.pos}", remedy=remedy)
    if isinstance(value, str):
        return {ADDRESS_COLUMN: value}
    return value if isinstance(value, dict) else Invalid("this is not a JSON object", remedy=remedy)


# -- CSV


class _CsvReader:
    """A header and its rows, told one after the other; holds one row at the most."""

    def __init__(self, largest: int, most_rows: int, *, exact: bool = False) -> None:
        self._largest = largest
        self._name_of = str if exact else normalize_column
        self._most_rows = most_rows
        self._names: list[str] = []
        self._delimiter = b","
        self._number = 0
        self._held: list[bytes] = []
        self._size = 0
        self._is_open = False  # in the middle of a quoted field
        self._is_lost = False  # the row is too long; only its end is looked for

    def take(self, line: bytes | None) -> NumberedRow | None:
        """One more line of the file (None: too long to be held); gives the row that ended with it."""
        if line is None:
            told = self._lose()
            self._begin()
            return told
        if self._number == 0 and not self._held:
            self._delimiter = _delimiter(line)
        self._is_open = _leaves_open(line, self._delimiter, self._is_open)
        if self._is_open:
            return self._hold(line)
        if self._is_lost:
            self._begin()
            return None
        record = b"\n".join([*self._held, line]) if self._held else line
        self._begin()
        return self._row(record)

    def end(self) -> NumberedRow | None:
        """The file is over."""
        if self._is_open and not self._is_lost:
            self._number += 1
            error = Invalid(
                "a quote is opened and never closed",
                remedy='close it, and write a quote inside a quoted field as ""',
            )
            return self._bad(error)
        if not self._names:
            raise _no_header()
        return None

    def _hold(self, line: bytes) -> NumberedRow | None:
        """The row goes on in the next line."""
        if self._is_lost:
            return None
        self._held.append(line)
        self._size += len(line) + 1
        return self._lose() if self._size > self._largest else None

    def _lose(self) -> NumberedRow | None:
        """The row is over the limit: told once, and not held any more."""
        if self._is_lost:
            return None
        self._number += 1
        self._is_lost = True
        self._held.clear()
        return self._bad(_too_long(self._largest))

    def _begin(self) -> None:
        """The next line begins a row."""
        self._held.clear()
        self._size = 0
        self._is_open = self._is_lost = False

    def _bad(self, error: TidingsError) -> NumberedRow:
        """A bad row; a bad header spoils everything."""
        if self._number == 1:
            raise error
        return self._number, error

    def _row(self, record: bytes) -> NumberedRow | None:
        self._number += 1
        if self._number > self._most_rows + 1:
            raise _too_many(self._most_rows)
        cells = self._cells(record)
        if isinstance(cells, TidingsError):
            return self._bad(cells)
        if not self._names:
            self._names = _header([self._name_of(cell) for cell in cells])
            return None
        is_empty = not any(cell and not cell.isspace() for cell in cells)
        return None if is_empty else (self._number, self._named(cells))

    def _cells(self, record: bytes) -> list[str] | TidingsError:
        delimiter = self._delimiter.decode()
        try:
            text = record.removesuffix(b"\r").decode()
            if '"' not in text and "\r" not in text:
                return text.split(delimiter)
            return next(csv.reader([text], delimiter=delimiter, strict=True), [])
        except UnicodeDecodeError as error:
            return Invalid(f"this is not UTF-8 (byte {error.start + 1} of the row)", remedy=_SAVE_AS)
        except csv.Error as error:
            return Invalid(
                f"this is not CSV ({error})", remedy='quote the whole field, with "" for a quote inside it'
            )

    def _named(self, cells: list[str]) -> dict[str, Any] | TidingsError:
        """The cells under their names; empty ones over the end, as spreadsheets leave them, are dropped."""
        width = len(self._names)
        if len(cells) < width or any(cells[width:]):
            names = ", ".join(self._names)
            return Invalid(
                f"the row has {len(cells)} fields, and the header {width}",
                remedy=f"write one field for each of: {names[:300]}",
            )
        return dict(zip(self._names, cells, strict=False))


def _leaves_open(line: bytes, delimiter: bytes, is_open: bool) -> bool:
    """Whether a quoted field goes on behind this line. A quote opens only where a field begins."""
    if b'"' not in line:
        return is_open
    place = 0
    while True:
        if is_open or line.startswith(b'"', place):
            place = _behind_quote(line, place if is_open else place + 1)
            if place < 0:
                return True
            is_open = False
        place = line.find(delimiter, place) + 1
        if place == 0:
            return False


def _behind_quote(line: bytes, place: int) -> int:
    """Where the quoted field that goes on here has ended; -1 if not in this line."""
    while (place := line.find(b'"', place)) >= 0:
        if not line.startswith(b'"', place + 1):
            return place + 1
        place += 2
    return -1


def _delimiter(header: bytes) -> bytes:
    """What stands between the names of the header most often."""
    bare = _QUOTED.sub(b"", header)
    return max(_DELIMITERS, key=bare.count)


def _header(names: list[str]) -> list[str]:
    while names and not names[-1]:
        names.pop()
    if not names:
        raise _no_header()
    if "" in names:
        raise Invalid(
            f"column {names.index('') + 1} has no name", field="header", remedy="name every column in row 1"
        )
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise Invalid(
            f"there are two columns {twice[0][:60]!r}", field="header", remedy="give each column its own name"
        )
    if not all(name.isprintable() for name in names):
        raise Invalid("a column's name has control characters", field="header", remedy=_SAVE_AS)
    return names


def normalize_column(heading: str) -> str:
    """A column's name as it is looked up: small letters, one underscore for a gap."""
    return _SPACES.sub("_", heading.strip()).lower()


def _no_header() -> Invalid:
    return Invalid(
        "the upload is empty or its first row is", field="header", remedy="name the columns in row 1"
    )


def _too_many(most: int) -> TooLarge:
    return TooLarge(f"there are more than {most:,} lines", remedy="split the call, or raise max_bulk")


def _too_long(largest: int) -> TooLarge:
    return TooLarge(
        f"the line has more than {largest:,} bytes", remedy="shorten it; see the setting max_body"
    )
