"""Rejects records that no database can store. Pure.

Null bytes and lone surrogates cannot be stored, and a record without an id cannot be identified. Such a
record is rejected by name, and the others continue.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any

import orjson

from .port import Fields, Record, UnreadableRecord

SUSPICIOUS = re.compile(rb"\x00|\\u0000|\\u[dD][89a-fA-F]")  # in JSON, before parsing


class InvalidRecord(Exception):
    """An unreadable record: reason, field, and its id if readable."""

    def __init__(self, reason: str, field: str | None = None, id: str | None = None) -> None:
        super().__init__(reason)
        self.reason, self.field, self.id = reason, field, id


def split_invalid_records(
    type_: str, rows: Sequence[Any], named: Sequence[Any], raw: bytes
) -> tuple[list[Record], list[UnreadableRecord]]:
    """Split the rows of a response into records and unreadable ones; `raw` is the whole response."""
    records: list[Record] = []
    unreadable: list[UnreadableRecord] = []
    is_suspicious = SUSPICIOUS.search(raw) is not None
    for row, id_ in zip(rows, named, strict=True):
        if not isinstance(row, dict) or id_ is None or isinstance(id_, dict | list | bool) or id_ == "":
            mark = hashlib.sha256(orjson.dumps(row)).hexdigest()[:12]
            unreadable.append(UnreadableRecord(type_, f"unnamed {mark}", "it has no id", "id"))
            continue
        try:
            if is_suspicious:
                check_texts(row)
            records.append(Record(type_, str(id_), row))
        except InvalidRecord as flaw:
            own = str(id_) if _problem(id_) is None else repr(id_)
            unreadable.append(UnreadableRecord(type_, own, flaw.reason, flaw.field))
    return records, unreadable


def check_texts(fields: Fields, id_: str | None = None) -> None:
    """Raise InvalidRecord for a text that no database stores; `id_` is the field with the id."""
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
            return "has a lone surrogate"
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return next((found for name, one in inner if (found := _problem(name) or _problem(one))), None)
