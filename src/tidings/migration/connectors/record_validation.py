"""What makes a record unfit to be kept, whatever system it comes from. Pure.

A null byte or half a character cannot be stored by any database we know; a record without an id cannot be
told from others. Such a record is set aside by name, and the rest goes on.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any

import orjson

from .port import Fields, Record, UnreadableRecord

SUSPICIOUS = re.compile(rb"\x00|\\u0000|\\u[dD][89a-fA-F]")  # in JSON, before it is read


class InvalidRecord(Exception):
    """A record that cannot be read: why, the field, and its id where that could be read."""

    def __init__(self, reason: str, field: str | None = None, id: str | None = None) -> None:
        super().__init__(reason)
        self.reason, self.field, self.id = reason, field, id


def split_invalid_records(
    type_: str, rows: Sequence[Any], named: Sequence[Any], raw: bytes
) -> tuple[list[Record], list[UnreadableRecord]]:
    """Records of an answer with their ids, and those that cannot be used; `raw` is the whole answer."""
    records: list[Record] = []
    spoiled: list[UnreadableRecord] = []
    is_suspicious = SUSPICIOUS.search(raw) is not None
    for row, id_ in zip(rows, named, strict=True):
        if not isinstance(row, dict) or id_ is None or isinstance(id_, dict | list | bool) or id_ == "":
            mark = hashlib.sha256(orjson.dumps(row)).hexdigest()[:12]
            spoiled.append(UnreadableRecord(type_, f"unnamed {mark}", "it has no id", "id"))
            continue
        try:
            if is_suspicious:
                check_texts(row)
            records.append(Record(type_, str(id_), row))
        except InvalidRecord as flaw:
            own = str(id_) if _problem(id_) is None else repr(id_)
            spoiled.append(UnreadableRecord(type_, own, flaw.reason, flaw.field))
    return records, spoiled


def check_texts(fields: Fields, id_: str | None = None) -> None:
    """Raise Flaw for a text that no database takes, naming its field; `id_` is the field with the id."""
    named = fields.get(id_) if id_ is not None else None
    for name, value in fields.items():
        problem = _problem(name) or _problem(value)
        if problem:
            own = str(named) if isinstance(named, str | int) and not _problem(named) else None
            raise InvalidRecord(f"{name!r} {problem}", name, own)


def _problem(value: Any) -> str | None:
    if isinstance(value, str):
        if "\x00" in value:
            return "has a null byte"
        try:
            value.encode()
        except UnicodeEncodeError:
            return "has half a character (a lone surrogate)"
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return next((found for name, one in inner if (found := _problem(name) or _problem(one))), None)
