"""NDJSON files: one JSON object per line, as source and as target."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from .confined_paths import confined_path
from .file_source import FileRow, FileSource, read_records
from .file_target import FileTarget
from .options import Connector, ConnectorReach, count, text
from .port import Fields, invalid
from .record_validation import SUSPICIOUS, InvalidRecord, check_texts

MAX_RECORD = 1 << 20

_LARGEST = 1 << 63
_NESTED = (dict, list)
_UNCERTAIN = re.compile(rb'"[ \t\r\n]+:|\d{18}|' + SUSPICIOUS.pattern)  # not safe for the fast parser


@dataclass(frozen=True, slots=True)
class NdjsonSettings:
    """`path` is a file, or a folder with one file per record type."""

    path: str
    id: str = "id"
    max_record: int = MAX_RECORD
    root: Path | None = None  # the folder it is confined to; None: unconfined


class NdjsonFormat:
    """One object per line, without a header."""

    suffix = ".ndjson"

    def __init__(self, settings: NdjsonSettings) -> None:
        self.id, self._most = settings.id, settings.max_record

    def head(self, file: BinaryIO) -> Sequence[str] | None:
        """Skip a byte order mark; NDJSON has no header."""
        if file.read(3) != b"\xef\xbb\xbf":
            file.seek(0)
        return None

    def rows(self, file: BinaryIO, line: int) -> Iterator[FileRow]:
        """Read the lines."""
        return read_records(file, self._most, line=line)

    def parse(self, raw: bytes, head: Sequence[str] | None) -> Fields:
        """Parse one line; duplicate names are rejected, since a value would be lost."""
        found = _plainly(raw)
        if found is not None:
            return found
        try:
            found = _DECODER.decode(raw.decode())
        except UnicodeDecodeError:
            raise InvalidRecord("it is not UTF-8") from None
        except RecursionError:
            raise InvalidRecord("it is nested too deeply") from None
        except json.JSONDecodeError as error:
            raise InvalidRecord(f"it is not JSON: {error.msg} at character {error.pos + 1}") from None
        if not isinstance(found, dict):
            raise InvalidRecord("it is not a JSON object")
        if SUSPICIOUS.search(raw):
            check_texts(found, self.id)
        return found

    def first(self, fields: Fields) -> bytes:
        """Return nothing: there is no header."""
        return b""

    def encode(self, fields: Fields, head: Sequence[str] | None) -> bytes:
        """Encode one line."""
        try:
            return orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)
        except TypeError as error:
            raise invalid(f"the record cannot be encoded as JSON: {error}") from error


def _plainly(raw: bytes) -> dict[str, Any] | None:
    """Parse with the fast parser where that is safe: no duplicate names, no number over 64 bits. Else None.

    Every name ends with `":` here, so an equal count of names and such marks means that none was lost.
    """
    if _UNCERTAIN.search(raw):
        return None
    try:
        found = orjson.loads(raw)
        is_whole = isinstance(found, dict) and _names(found) == raw.count(b'":')
    except (orjson.JSONDecodeError, RecursionError):
        return None
    return found if is_whole else None


def _names(value: Any) -> int:
    """Count the names in a value, nested ones included."""
    inner = value.values() if isinstance(value, dict) else value
    own = len(value) if isinstance(value, dict) else 0
    return own + sum(_names(one) for one in inner if isinstance(one, _NESTED))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidRecord(f"duplicate name {twice!r}", twice)
    return found


def _whole_number(digits: str) -> int:
    if len(digits) > 20 or not -_LARGEST <= (found := int(digits)) < _LARGEST:
        raise InvalidRecord(f"the number {digits[:20]}… is over 64 bits: write it as a text")
    return found


def _no_number(word: str) -> float:
    raise InvalidRecord(f"{word} is not a JSON number")


_DECODER = json.JSONDecoder(object_pairs_hook=_once, parse_int=_whole_number, parse_constant=_no_number)


CONNECTOR = Connector(
    settings=NdjsonSettings,
    options={"path": text, "id": text, "max_record": count(1_024, 64 << 20)},
    source=lambda settings, _: FileSource("ndjson", confined_path(settings), NdjsonFormat(settings)),
    target=lambda settings, _: FileTarget("ndjson", confined_path(settings), NdjsonFormat(settings)),
    judge=confined_path,
    reach=ConnectorReach.FOLDER,
)
