"""Field rules and type maps: where a target field comes from, its type, and what happens on errors."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from zoneinfo import ZoneInfo

from ..connectors.port import Record
from .expressions import Expression

LONGEST_TEXT = 1_000_000  # characters, unless a rule says otherwise
OWN_ID = "@id"  # the path of a record's id in the source


class FieldKind(StrEnum):
    """The type a value is converted to and checked against."""

    TEXT = "text"
    NUMBER = "number"
    BOOLEAN = "boolean"
    DATE = "date"
    TIME = "time"
    EMAIL = "email"
    PHONE = "phone"
    URL = "url"
    SELECT = "select"
    REFERENCE = "reference"
    JSON = "json"


class OnMissing(StrEnum):
    """What happens when the source has no value (null, an empty text, an empty list)."""

    LEAVE = "leave"  # the field is not written
    CLEAR = "clear"  # the field is written as empty
    REFUSE = "refuse"  # the record is rejected
    SKIP = "skip"  # the record is skipped


class OnError(StrEnum):
    """What happens to a value that cannot be used."""

    REFUSE = "refuse"
    LEAVE = "leave"
    DEFAULT = "default"
    SKIP = "skip"


class OnUnresolved(StrEnum):
    """What happens to a link whose record is not in the target yet."""

    WAIT = "wait"  # the record waits
    LEAVE = "leave"  # written without it, and again later (breaks a cycle)
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class FieldRule:
    """One target field. Its value comes from a path, an expression, or is constant."""

    name: str
    kind: FieldKind = FieldKind.TEXT
    path: str | None = None
    expression: Expression | None = None
    constant: Any = None
    default: Any = None
    values: Mapping[str, Any] | None = None  # source option -> target option; "*" for all others
    options: tuple[str, ...] = ()
    reference: str | None = None  # the linked record type
    unresolved: OnUnresolved = OnUnresolved.WAIT
    many: bool = False
    on_missing: OnMissing = OnMissing.LEAVE
    on_error: OnError = OnError.REFUSE
    timezone: ZoneInfo | None = None
    format: str | None = None
    max_length: int = LONGEST_TEXT
    secret: bool = False

    @property
    def is_constant(self) -> bool:
        """Whether nothing is read from the source."""
        return self.path is None and self.expression is None

    @property
    def reads(self) -> frozenset[str]:
        """The source fields that this field is made of."""
        if self.expression is not None:
            return self.expression.reads
        return frozenset() if self.path in (None, OWN_ID) else frozenset({str(self.path)})


@dataclass(frozen=True, slots=True)
class TypeMap:
    """How records of one type are migrated. `name` is the job's name for the type."""

    name: str
    source: str
    target: str
    fields: tuple[FieldRule, ...]
    key: str = OWN_ID  # path of the record's key in the target
    after: tuple[str, ...] = ()
    skip: Expression | None = None
    hook: str | None = None
    ignore: frozenset[str] = frozenset()  # source fields that are deliberately not migrated
    group: str | None = None  # path of the field by which verification groups
    extra: bool = False  # the target may have other records
    batch_size: int = 1000
    raw: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)  # as it was written

    @property
    def waits_for(self) -> frozenset[str]:
        """The types that come before this one."""
        links = {
            rule.reference
            for rule in self.fields
            if rule.reference is not None and rule.unresolved is not OnUnresolved.LEAVE
        }
        return frozenset(links - {self.name}) | frozenset(self.after)


def value_at(record: Record, path: str) -> Any:
    """Return the value at a path; `a.b.0` descends, but a field with that whole name comes first. None: no value."""
    if path == OWN_ID:
        return record.id
    if path in record.fields:
        return record.fields[path]
    value: Any = record.fields
    for step in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list | tuple) and step.isdecimal() and len(step) < 10:
            value = value[int(step)] if int(step) < len(value) else None
        else:
            return None
    return value


def has_path_root(path: str, fields: Container[str]) -> bool:
    """Return whether the source has the first field of a path."""
    return path == OWN_ID or path in fields or path.partition(".")[0] in fields
