"""What mapping a record gives: the fields to write, or the rule that refused it and why."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..connectors.port import ErrorKind, Fields, RecordState

LONGEST_SHOWN = 80
HIDDEN = "***"

TargetIdLookup = Callable[[str, str], str | None]
"""The target's id of a record of a type, by its id in the source; None: it is not there yet."""


class RecordLink(NamedTuple):
    """A link to another record; without `target_id` it was left open and is written in a second pass."""

    field: str
    type: str
    source_id: str
    target_id: str | None


class DroppedValue(NamedTuple):
    """A value that was left out or replaced because the map says so; nothing is lost silently."""

    field: str
    value: str
    rule: str
    reason: str


class MappedRecord(NamedTuple):
    """A record as the target shall have it. Equal hashes: equal content."""

    key: str
    fields: Fields
    hash: str
    relations: Sequence[RecordLink] = ()
    lost: Sequence[DroppedValue] = ()


class RejectedRecord(NamedTuple):
    """A record that cannot be written, or not yet, or not at all; `standing` says which of these."""

    type: str
    id: str
    field: str | None
    value: str
    rule: str
    reason: str
    failure: ErrorKind | None = ErrorKind.VALIDATION
    standing: RecordState = RecordState.REJECTED

    def __str__(self) -> str:
        where = f"{self.type} {self.id}"
        if self.field is not None:
            where += f": {self.field} is {self.value}"
        return f"{where}: {self.reason} (rule: {self.rule})"

    @property
    def fingerprint(self) -> str:
        """The same for all records with the same cause."""
        return f"{self.failure or self.standing}/{self.type}/{self.field or ''}/{self.rule}"


def redacted(value: Any, *, secret: bool = False) -> str:
    """A value as it may stand in a log: short, on one line, hidden where the map says so."""
    if secret and value is not None:
        return HIDDEN
    if isinstance(value, str):
        text, size = json.dumps(value[:LONGEST_SHOWN], ensure_ascii=False), len(value)
        printable = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
        return printable if size <= LONGEST_SHOWN else f'{printable[:-1]}…" ({size:,} characters)'
    if isinstance(value, bytes | bytearray):
        return f"{len(value):,} bytes"
    if value is None:
        return "missing"
    if isinstance(value, dict | list | tuple):
        kind = "an object" if isinstance(value, dict) else "a list"
        return f"{kind} of {len(value)}"
    if isinstance(value, int) and value.bit_length() > 1000:
        return f"a number of {value.bit_length():,} bits"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
