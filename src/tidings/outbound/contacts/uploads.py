"""Read rows from a CSV or NDJSON byte stream in constant memory.

An invalid row is yielded as an error in its place, so the caller may continue. Errors of the whole upload (no
header, too many rows or bytes) are raised. NDJSON rows are numbered by line, CSV rows as in a spreadsheet,
where the header is row 1.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from tempfile import SpooledTemporaryFile
from typing import Any, Literal, TypeVar

import orjson

from ...inputs.fields import closest
from ...model.errors import Invalid, TidingsError, TooLarge

UploadFormat = Literal["csv", "ndjson"]
Parsed = TypeVar("Parsed")
NumberedRow = tuple[int, dict[str, Any] | TidingsError]

MAX_UPLOAD_BYTES = 1 << 30
ADDRESS_COLUMN = "address"  # the column of an NDJSON line that is only a string
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
    """The format of a media type or file name; raises Invalid."""
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
    required: Sequence[str] = (),
) -> AsyncIterator[NumberedRow]:
    """Numbered rows of a stream; `largest` is the maximum size of one row in bytes.

    `exact` keeps column names as written. A CSV header without any of the `required` columns is refused.
    """
    if form == "ndjson":
        numbered = read_lines(pieces, largest=largest, most_lines=most_lines, most_bytes=most_bytes)
        async for number, said in numbered:
            yield number, said if isinstance(said, TidingsError) else _object(said)
        return
    table = _CsvReader(largest, most_lines, exact=exact, required=required)
    async for some in _split(pieces, largest, most_bytes):
        for line in some:
            if (row := table.take(line)) is not None:
                yield row
    if (row := table.end()) is not None:
        yield row


async def read_lines(
    pieces: AsyncIterator[bytes], *, largest: int, most_lines: int, most_bytes: int = MAX_UPLOAD_BYTES
) -> AsyncIterator[tuple[int, bytes | TidingsError]]:
    """Numbered lines without empty ones. A line that is too long is reported and never held in memory."""
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


async def _split(pieces: AsyncIterator[bytes], largest: int, most_bytes: int) -> AsyncIterator[list[bytes | None]]:
    """Complete lines without line endings; None for a line that is too long."""
    taken, is_first, is_skipping = 0, True, False
    held = bytearray()
    async for piece in pieces:
        taken += len(piece)
        if taken > most_bytes:
            raise TooLarge(f"the upload has more than {most_bytes:,} bytes", remedy="split the upload")
        first, *more = piece.split(b"\n")
        if not is_skipping:
            held += first
        whole: list[bytes | None] = []
        if more:
            whole = [bytes(held), *more[:-1]]
            whole = [line if len(line) <= largest else None for line in whole if line is not None]
            if is_skipping:  # the rest of a line that was already reported as too long
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


async def read_chunks(rows: AsyncIterator[NumberedRow], size: int) -> AsyncIterator[list[NumberedRow]]:
    """The rows in lists of this size; the last one may be shorter."""
    chunk: list[NumberedRow] = []
    async for row in rows:
        chunk.append(row)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def parse_chunk(
    chunk: Iterable[NumberedRow], parse: Callable[[dict[str, Any]], Parsed]
) -> tuple[list[tuple[int, Parsed]], list[tuple[int, TidingsError]]]:
    """The parsed rows with their numbers, and the refused ones."""
    good: list[tuple[int, Parsed]] = []
    bad: list[tuple[int, TidingsError]] = []
    for number, row in chunk:
        try:
            if isinstance(row, TidingsError):
                raise row
            good.append((number, parse(row)))
        except TidingsError as error:
            bad.append((number, error))
    return good, bad


class RewindableStream:
    """A stream that can be read twice; it is spooled to memory, or to a temporary file if it is long."""

    def __init__(self, pieces: AsyncIterator[bytes]) -> None:
        self._pieces = pieces
        self._file = SpooledTemporaryFile(max_size=1 << 20)  # noqa: SIM115  (closed with this)
        self._is_over = False

    async def pieces(self) -> AsyncIterator[bytes]:
        """The bytes; the second time from the spool."""
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
        self._file.close()


# -- NDJSON


def _object(line: bytes) -> dict[str, Any] | TidingsError:
    remedy = 'write one object per line: {"address": "ada"}, or only "ada"'
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        return Invalid(f"the line is not JSON: {error.msg} at character {error.pos}", remedy=remedy)
    if isinstance(value, str):
        return {ADDRESS_COLUMN: value}
    return value if isinstance(value, dict) else Invalid("the line is not a JSON object", remedy=remedy)


# -- CSV


class _CsvReader:
    """Parses a header and its rows line by line; holds at most one row."""

    def __init__(self, largest: int, most_rows: int, *, exact: bool, required: Sequence[str]) -> None:
        self._largest = largest
        self._name_of = str if exact else normalize_column
        self._most_rows = most_rows
        self._required = required
        self._names: list[str] = []
        self._delimiter = b","
        self._number = 0
        self._held: list[bytes] = []
        self._size = 0
        self._is_open = False  # inside a quoted field
        self._is_lost = False  # the row is too long; skip to its end

    def take(self, line: bytes | None) -> NumberedRow | None:
        """Read one line (None: too long); returns the row that ends with it, if any."""
        if line is None:
            row = self._lose()
            self._begin()
            return row
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
        """End the file; returns an unfinished row as an error, and raises without a header."""
        if self._is_open and not self._is_lost:
            self._number += 1
            error = Invalid("a quote is never closed", remedy='close it, and write a quote inside a quoted field as ""')
            return self._bad(error)
        if not self._names:
            raise _no_header()
        return None

    def _hold(self, line: bytes) -> NumberedRow | None:
        """Keep a line of a row that continues on the next one."""
        if self._is_lost:
            return None
        self._held.append(line)
        self._size += len(line) + 1
        return self._lose() if self._size > self._largest else None

    def _lose(self) -> NumberedRow | None:
        """Drop a row that exceeds the limit; reported once."""
        if self._is_lost:
            return None
        self._number += 1
        self._is_lost = True
        self._held.clear()
        return self._bad(_too_long(self._largest))

    def _begin(self) -> None:
        self._held.clear()
        self._size = 0
        self._is_open = self._is_lost = False

    def _bad(self, error: TidingsError) -> NumberedRow:
        """An invalid row; raises for the header."""
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
            if self._required and not set(self._required) & set(self._names):
                raise _no_column(self._required[0], self._names)
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
            return Invalid(f"the row is not UTF-8 (byte {error.start + 1})", remedy=_SAVE_AS)
        except csv.Error as error:
            return Invalid(
                f"the row is not valid CSV ({error})", remedy='quote the whole field, with "" for a quote inside it'
            )

    def _named(self, cells: list[str]) -> dict[str, Any] | TidingsError:
        """The cells by column name; extra empty cells at the end are dropped."""
        width = len(self._names)
        if len(cells) < width or any(cells[width:]):
            names = ", ".join(self._names)
            return Invalid(
                f"the row has {len(cells)} fields but the header has {width}",
                remedy=f"write one field for each of: {names[:300]}",
            )
        return dict(zip(self._names, cells, strict=False))


def _leaves_open(line: bytes, delimiter: bytes, is_open: bool) -> bool:
    """Whether a quoted field continues after this line. A quote opens only at the start of a field."""
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
    """The position after the quoted field; -1 if it does not end in this line."""
    while (place := line.find(b'"', place)) >= 0:
        if not line.startswith(b'"', place + 1):
            return place + 1
        place += 2
    return -1


def _delimiter(header: bytes) -> bytes:
    """The most frequent delimiter of the header."""
    bare = _QUOTED.sub(b"", header)
    return max(_DELIMITERS, key=bare.count)


def _header(names: list[str]) -> list[str]:
    while names and not names[-1]:
        names.pop()
    if not names:
        raise _no_header()
    if "" in names:
        raise Invalid(f"column {names.index('') + 1} has no name", field="header", remedy="name every column in row 1")
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise Invalid(
            f"the column {twice[0][:60]!r} is duplicated", field="header", remedy="give each column its own name"
        )
    if not all(name.isprintable() for name in names):
        raise Invalid("a column's name has control characters", field="header", remedy=_SAVE_AS)
    return names


def _no_column(wanted: str, names: list[str]) -> Invalid:
    like = next((name for name in names if closest(name, (wanted,))), None)
    remedy = f"name one of the columns {wanted!r}" if like is None else f"rename the column {like!r} to {wanted!r}"
    problem = f"the header has no column {wanted!r}; its columns are: {', '.join(names)[:200]}"
    return Invalid(problem, field="header", remedy=remedy)


def normalize_column(heading: str) -> str:
    """A normalized column name: lowercase, with underscores for spaces."""
    return _SPACES.sub("_", heading.strip()).lower()


def _no_header() -> Invalid:
    return Invalid("the upload or its header is empty", field="header", remedy="name the columns in row 1")


def _too_many(most: int) -> TooLarge:
    return TooLarge(f"the upload has more than {most:,} lines", remedy="split it, or raise max_bulk")


def _too_long(largest: int) -> TooLarge:
    return TooLarge(f"the line has more than {largest:,} bytes", remedy="shorten it; see the setting max_body")
