"""The words of migration: records, what a source gives, what a target takes, and what came of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, runtime_checkable

Fields = Mapping[str, Any]


class RecordState(StrEnum):
    """Where a record stands. Every record ends in one of the last six."""

    EXTRACTED = "extracted"  # read from the source
    READY = "ready"  # mapped, checked, may be written
    WAITING = "waiting"  # for a parent that is not there yet
    CLAIMED = "claimed"  # about to be written: after a crash it is in doubt
    UNKNOWN = "unknown"  # perhaps written; only a look at the target moves it on
    WRITTEN = "written"
    UNCHANGED = "unchanged"  # the target has it already, the same
    REJECTED = "rejected"  # bad data: repaired and replayed, or given up
    FAILED = "failed"  # all tries used up
    SKIPPED = "skipped"  # left out by decision
    CONFLICT = "conflict"  # a person decides


FINAL_STATES = frozenset(list(RecordState)[5:])


class WriteStrategy(StrEnum):
    """How a target takes a record so that none is written twice."""

    UPSERT = "upsert"  # by a key of ours: sending it again changes nothing
    SEARCH = "search"  # look for it, then create
    MARK = "mark"  # create with a mark of ours, which can be searched for
    RECONCILE = "reconcile"  # create once; in doubt, list and compare


class ErrorKind(StrEnum):
    """Kinds of errors, each with its own policy."""

    RATE_LIMIT = "rate_limit"
    TIMEOUT = "timeout"
    SERVER = "5xx"
    TEMPORARY = "temporary_failure"
    AMBIGUOUS = "ambiguous"
    VALIDATION = "validation"
    PERMANENT = "permanent"
    NOT_FOUND = "not_found"
    CREDENTIALS = "invalid_credentials"
    PERMISSION = "permission_denied"
    QUOTA = "quota_exhausted"
    DEPENDENCY = "dependency"
    PROGRAM = "program"  # an error of the program or of a hook, not of the data
    UNKNOWN = "unclassified"


class ConnectorError(Exception):
    """What a connector raises. `sent` says whether the request may have reached the other side."""

    def __init__(
        self,
        failure: ErrorKind,
        reason: str,
        *,
        wait: timedelta | None = None,
        sent: bool = False,
        field: str | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(reason)
        self.failure, self.reason, self.wait = failure, reason, wait
        self.sent, self.field, self.code = sent, field, code


class Record(NamedTuple):
    """One record as the source has it."""

    type: str
    id: str
    fields: Fields


class UnreadableRecord(NamedTuple):
    """A record that a source has but cannot give: it is set aside as rejected, and the rest goes on."""

    type: str
    id: str  # its id where that can be read, else its place, such as "line 7"
    reason: str
    field: str | None = None


class RecordPage(NamedTuple):
    """Records in a stable order, and where to go on; None: that was all."""

    records: Sequence[Record]
    cursor: str | None
    spoiled: Sequence[UnreadableRecord] = ()


class Attribute(NamedTuple):
    """A field that a system knows."""

    name: str
    type: str  # text, number, boolean, date, time, email, phone, url, select, reference, json
    required: bool = False
    unique: bool = False
    many: bool = False
    options: Sequence[str] = ()  # of a select


class SystemLimits(NamedTuple):
    """What a system bears."""

    reads_per_second: float | None = None
    writes_per_second: float | None = None
    per_month: int | None = None
    concurrency: int = 8
    bulk: int = 1  # records of one write call


class Quota(NamedTuple):
    """What is left of an allowance that is counted by the other side."""

    limit: int | None  # None: unlimited
    remaining: int | None
    reset: timedelta | None  # until it is full again


class TargetRecord(NamedTuple):
    """A record in the target."""

    id: str
    fields: Fields | None = None  # as the target has it, where it said so


class RecordSource(Protocol):
    """Reads records."""

    kind: str
    limits: SystemLimits

    async def attributes(self, type_: str) -> Sequence[Attribute] | None:
        """The fields of a record type; None: only the records themselves show them."""

    async def count(self, type_: str) -> int | None:
        """How many there are; None: nobody knows before reading."""

    async def page(self, type_: str, cursor: str | None) -> RecordPage:
        """The next records; the same cursor gives the same records again."""

    async def close(self) -> None:
        """Let go of connections."""


@runtime_checkable
class SupportsQuota(Protocol):
    """What a source or target may fill besides, where calls are counted by the month."""

    async def quota(self) -> Quota:
        """What is left of this month; asking costs nothing of it."""


@runtime_checkable
class SupportsErase(Protocol):
    """What a target may fill besides, where what was created can be taken out again."""

    async def erase(self, type_: str, id_: str) -> None:
        """Delete one by the target's own id; one that is gone already is as good as deleted."""


class RecordTarget(Protocol):
    """Takes records. A write that may have happened raises Trouble with `sent`."""

    kind: str
    limits: SystemLimits

    def strategy(self, type_: str) -> WriteStrategy:
        """How records of this type are written only once."""

    async def attributes(self, type_: str) -> Sequence[Attribute] | None:
        """The fields it takes."""

    async def find(self, type_: str, key: str, fields: Fields) -> Sequence[TargetRecord]:
        """What is there already under this key, or, without keys, with this content."""

    async def write(self, type_: str, key: str, fields: Fields, known: str | None) -> TargetRecord:
        """Create or change one; `known` is its id in the target where that is known."""

    async def write_many(
        self, type_: str, records: Sequence[tuple[str, Fields, str | None]]
    ) -> Sequence[TargetRecord | ConnectorError]:
        """The same for many, one answer each; only where `limits.bulk` is over 1."""

    def read_all(self, type_: str) -> AsyncIterator[tuple[str, TargetRecord]]:
        """Every record with its key, for verification."""

    async def close(self) -> None:
        """Let go of connections."""
