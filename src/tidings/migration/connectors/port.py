"""The interface of connectors: RecordSource, RecordTarget, records, limits and errors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Any, BinaryIO, NamedTuple, Protocol, runtime_checkable

Fields = Mapping[str, Any]


class WriteStrategy(StrEnum):
    """How a target avoids writing a record twice."""

    UPSERT = "upsert"  # by our key: a repeated write changes nothing
    SEARCH = "search"  # look it up, then create it
    MARK = "mark"  # create it with a searchable mark
    RECONCILE = "reconcile"  # create once; on an unknown outcome, list and compare


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
    PROGRAM = "program"  # a bug in a connector or hook, not bad data
    UNKNOWN = "unclassified"


class ConnectorError(Exception):
    """Raised by connectors. `sent` says whether the request may have reached the system."""

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


def invalid(reason: str, field: str | None = None) -> ConnectorError:
    """Return the error for data or options that the system would reject."""
    return ConnectorError(ErrorKind.VALIDATION, reason, field=field)


class Record(NamedTuple):
    """A record of the source."""

    type: str
    id: str
    fields: Fields


class UnreadableRecord(NamedTuple):
    """A record that the source cannot return. It is rejected, and the others continue."""

    type: str
    id: str  # its id if readable, else its place, such as "line 7"
    reason: str
    field: str | None = None


class RecordPage(NamedTuple):
    """Records in a stable order, and the cursor of the next page; None: the last page."""

    records: Sequence[Record]
    cursor: str | None
    unreadable: Sequence[UnreadableRecord] = ()
    calls: int = 1  # that the page took
    notes: Sequence[str] = ()  # what the source did not return, for the plan report


class Attribute(NamedTuple):
    """A field of a system."""

    name: str
    type: str  # text, number, boolean, date, time, email, phone, url, select, reference, json
    required: bool = False
    unique: bool = False
    many: bool = False
    options: Sequence[str] = ()  # for type select


def parse_attributes(text: str) -> list[Attribute]:
    """Parse attributes: `name:kind`, with `*` for a list and `!` for required; without a kind, text."""
    found = []
    for word in text.split():
        name, _, kind = word.rstrip("*!").partition(":")
        found.append(Attribute(name, kind or "text", required=word.endswith("!"), many=word.endswith("*")))
    return found


class SystemLimits(NamedTuple):
    """Rate limits and capacity of a system."""

    reads_per_second: float | None = None
    writes_per_second: float | None = None
    per_month: int | None = None
    concurrency: int = 8
    bulk: int = 1  # records per write call


class Quota(NamedTuple):
    """A quota that the other side counts."""

    limit: int | None  # None: unlimited
    remaining: int | None
    reset: timedelta | None  # time until it is renewed


class TargetRecord(NamedTuple):
    """A record in the target."""

    id: str
    fields: Fields | None = None  # its current fields, if the target returns them


class SupportsPages(Protocol):
    """Returns records page by page."""

    async def page(self, type_: str, cursor: str | None) -> RecordPage:
        """Return the next records; the same cursor returns the same records."""


class RecordSource(SupportsPages, Protocol):
    """Reads records."""

    kind: str
    limits: SystemLimits

    async def attributes(self, type_: str) -> Sequence[Attribute] | None:
        """Return the fields of a record type; None: only the records show them."""

    async def count(self, type_: str) -> int | None:
        """Return the number of records; None: unknown before reading."""

    async def close(self) -> None:
        """Close all connections."""


async def all_pages(source: SupportsPages, type_: str) -> AsyncIterator[RecordPage]:
    """Yield the pages of a record type from the first to the last."""
    page = await source.page(type_, None)
    yield page
    while page.cursor is not None:
        page = await source.page(type_, page.cursor)
        yield page


@runtime_checkable
class SupportsQuota(Protocol):
    """Optional for sources and targets with a monthly quota."""

    async def quota(self) -> Quota:
        """Return the monthly quota, by a call that is not counted."""


@runtime_checkable
class SupportsCallEstimate(Protocol):
    """Optional for sources with a monthly quota."""

    def calls_to_read(self, type_: str, records: int) -> int:
        """Return the calls that reading so many records takes."""


@runtime_checkable
class SupportsCanonicalForm(Protocol):
    """Optional for targets that return values in another form than they accept."""

    async def canonical(self, type_: str, fields: Fields) -> Fields:
        """Return fields in the form in which the target returns them; it accepts this form, too."""


@runtime_checkable
class SupportsBulk(Protocol):
    """Required of targets whose `limits.bulk` is over 1."""

    async def write_many(
        self, type_: str, records: Sequence[tuple[str, Fields, str | None]]
    ) -> Sequence[TargetRecord | ConnectorError]:
        """Write many records, one result each."""


@runtime_checkable
class SupportsDownload(Protocol):
    """Optional for sources with files."""

    def has_file(self, type_: str) -> bool:
        """Return whether each record of this type is a file with content."""

    async def download(self, type_: str, id_: str, file: BinaryIO, limit: int) -> None:
        """Write the content of a file to `file`; more than `limit` bytes are a VALIDATION error."""


@runtime_checkable
class SupportsUpload(Protocol):
    """Optional for targets with files. Each is looked up with `find` before it is uploaded."""

    uploads_per_second: float

    def file_limit(self, type_: str) -> int | None:
        """Return the size of the largest file in bytes; None: records of this type are not files."""

    async def upload(self, type_: str, fields: Fields, file: BinaryIO) -> TargetRecord:
        """Create a record from its fields and its content."""


@runtime_checkable
class SupportsErase(Protocol):
    """Optional for targets that can delete records."""

    async def erase(self, type_: str, id_: str) -> None:
        """Delete a record by its target id; a missing one is fine."""


class RecordTarget(Protocol):
    """Writes records. A write that may have happened raises ConnectorError with `sent`."""

    kind: str
    limits: SystemLimits

    def strategy(self, type_: str) -> WriteStrategy:
        """Return how records of this type are written only once."""

    async def attributes(self, type_: str) -> Sequence[Attribute] | None:
        """Return the fields it accepts."""

    async def find(self, type_: str, key: str, fields: Fields) -> Sequence[TargetRecord]:
        """Find existing records by key or, without keys, by content."""

    async def write(self, type_: str, key: str, fields: Fields, known: str | None) -> TargetRecord:
        """Create or update a record; `known` is its id in the target, if known."""

    def read_all(self, type_: str) -> AsyncIterator[tuple[str, TargetRecord]]:
        """Yield every record with its key, for verification."""

    async def close(self) -> None:
        """Close all connections."""
