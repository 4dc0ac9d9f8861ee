"""NDJSON files: one JSON object per line, as source and as target."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import orjson

from .confined_paths import FileSettings
from .file_source import FileFormat
from .file_target import file_connector
from .port import Fields, invalid
from .record_validation import SUSPICIOUS, InvalidRecord, check_texts

_LARGEST = 1 << 63
_NESTED = (dict, list)
_UNCERTAIN = re.compile(rb'"[ \t\r\n]+:|\d{18}|' + SUSPICIOUS.pattern)  # not safe for the fast parser


class NdjsonFormat(FileFormat):
    """One object per line, without a header."""

    suffix = ".ndjson"

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

    def encode(self, fields: Fields, head: Sequence[str] | None) -> bytes:
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


CONNECTOR = file_connector(NdjsonFormat, FileSettings)
