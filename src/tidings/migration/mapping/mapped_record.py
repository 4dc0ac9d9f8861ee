"""The result of mapping: a mapped or a rejected record, links, dropped values; redaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..connectors.port import Attribute, ErrorKind, Fields
from ..job_file_section import nearest
from ..record_states import RecordState

LONGEST_SHOWN = 80
HIDDEN = "***"

TargetIdLookup = Callable[[str, str], str | None]
"""Returns the target id of a record by type and source id; None: not in the target yet."""


class RecordLink(NamedTuple):
    """A link to another record; without `target_id` it is written in a second pass."""

    field: str
    type: str
    source_id: str
    target_id: str | None


class DroppedValue(NamedTuple):
    """A value that the map left out or replaced; reported so that nothing is lost silently."""

    field: str
    value: str
    rule: str
    reason: str


class FieldChange(NamedTuple):
    """One field that differs between source and target, shortened and redacted."""

    field: str
    expected: str
    found: str


class MappedRecord(NamedTuple):
    """A record as the target should have it. Equal hashes mean equal content."""

    key: str
    fields: Fields
    hash: str
    relations: Sequence[RecordLink] = ()
    lost: Sequence[DroppedValue] = ()


class RejectedRecord(NamedTuple):
    """A record that is rejected, skipped, or waiting for another; see `state`."""

    type: str
    id: str
    field: str | None
    value: str
    rule: str
    reason: str
    failure: ErrorKind | None = ErrorKind.VALIDATION
    state: RecordState = RecordState.REJECTED
    cause: BaseException | None = None  # what a hook raised

    def __str__(self) -> str:
        where = f"{self.type} {self.id}"
        if self.field is not None:
            where += f": {self.field} is {self.value}"
        return f"{where}: {self.reason} (rule: {self.rule})"

    @property
    def fingerprint(self) -> str:
        """Return a value that is the same for all records with the same cause."""
        return f"{self.failure or self.state}/{self.type}/{self.field or ''}/{self.rule}"


def redacted(value: Any, *, secret: bool = False) -> str:
    """Format a value for a log: short, on one line, hidden if secret."""
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


def schema_mismatch(
    type_: str, id_: str, mapped: MappedRecord, attributes: Mapping[str, Attribute]
) -> RejectedRecord | None:
    """Return a rejection for the first field that the target would not accept; None if all fit."""
    for name, value in mapped.fields.items():
        problem = _problem(name, value, attributes)
        if problem is not None:
            return RejectedRecord(type_, id_, name, redacted(value), *problem)
    for name, attribute in attributes.items():
        if attribute.required and mapped.fields.get(name) is None:
            return RejectedRecord(type_, id_, name, "missing", "required", "the target requires it")
    return None


def _problem(name: str, value: Any, attributes: Mapping[str, Attribute]) -> tuple[str, str] | None:
    attribute = attributes.get(name)
    if attribute is None:
        return "attribute", f"the target has no such attribute: {nearest(name, attributes)}"
    if value is None:
        return ("required", "the target requires it") if attribute.required else None
    entries = value if isinstance(value, list) else [value]
    if isinstance(value, list) and not attribute.many and attribute.type != "json":
        return "many", "the target takes one value, not a list"
    if attribute.type == "select" and attribute.options:
        for entry in entries:
            if str(entry) not in attribute.options:
                return "options", f"{redacted(entry)} is not one of the target's options"
    return None
