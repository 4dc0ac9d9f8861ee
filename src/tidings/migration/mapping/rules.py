"""Rules of a map: which field of the target comes from where, of what type, and what if not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from zoneinfo import ZoneInfo

from .expressions import Expression

LONGEST_TEXT = 1_000_000  # characters, unless a rule says otherwise
OWN_ID = "@id"  # the path of a record's id in the source


class FieldKind(StrEnum):
    """What a value is made into, and checked as."""

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
    """What happens where the source has nothing (null, an empty text, an empty list)."""

    LEAVE = "leave"  # the field is not written
    CLEAR = "clear"  # the field is written as empty
    REFUSE = "refuse"  # the record is rejected
    SKIP = "skip"  # the record is left out by decision


class OnError(StrEnum):
    """What happens to a value that cannot be used."""

    REFUSE = "refuse"
    LEAVE = "leave"
    DEFAULT = "default"
    SKIP = "skip"


class OnUnresolved(StrEnum):
    """What happens to a link whose other end is not in the target yet."""

    WAIT = "wait"  # the record waits for it
    LEAVE = "leave"  # written without it, and again when it is there: how a cycle is opened
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class FieldRule:
    """One field of the target. Its value comes from a path, an expression, or is constant."""

    name: str
    kind: FieldKind = FieldKind.TEXT
    path: str | None = None
    expression: Expression | None = None
    constant: Any = None
    default: Any = None
    values: Mapping[str, Any] | None = None  # the source's option: the target's; "*" for all others
    options: tuple[str, ...] = ()
    reference: str | None = None  # the record type that is linked to
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
        """Whether nothing of the source is read."""
        return self.path is None and self.expression is None

    @property
    def reads(self) -> frozenset[str]:
        """The fields of the source that this one is made of."""
        if self.expression is not None:
            return self.expression.reads
        return frozenset() if self.path in (None, OWN_ID) else frozenset({str(self.path)})


@dataclass(frozen=True, slots=True)
class TypeMap:
    """How records of one type are moved. `name` is the job's own word for the type."""

    name: str
    source: str
    target: str
    fields: tuple[FieldRule, ...]
    key: str = OWN_ID  # path of what the target knows the record by
    after: tuple[str, ...] = ()
    skip: Expression | None = None
    hook: str | None = None
    ignore: frozenset[str] = frozenset()  # fields of the source that are left behind by decision
    group: str | None = None  # path of the field by which verification counts
    extra: bool = False  # the target may have records of its own
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
