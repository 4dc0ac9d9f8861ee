"""Import contacts and opt-outs from uploads, one transaction per chunk; dry run, all or nothing.

An invalid row is reported with its number and skipped. Contacts are matched by their addresses, so repeating
an upload creates no duplicates. All-or-nothing reads the upload twice and writes only the second time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from ...inputs.fields import hint
from ...model.errors import Invalid, TidingsError
from . import contact_fields
from .service import ContactResult, ContactService
from .suppressions import OptOut, SuppressionService, read_opt_out
from .uploads import ADDRESS_COLUMN, NumberedRow, normalize_column, parse_chunk, read_chunks

CHUNK = 500
IMPORT_FIELDS = ("name", "timezone", "language", "tags")
_PREFIX = "address."
_MAX_REPORTED_COLUMNS = 100  # attribute columns listed in the result

ReadUpload = Callable[[], AsyncIterator[NumberedRow]]  # reads an upload from its start


class BulkImportProgress(NamedTuple):
    """Counts of some rows by result, and the refused rows."""

    counts: Mapping[str, int]
    bad: Sequence[tuple[int, TidingsError]]


class ContactColumns:
    """Maps columns to `name`, `zone`, `language`, `tags`, `address.<channel>`, or an attribute.

    `names` maps other column names: {"address.sms": "mobile"}. A column `address`, or a line that is only a
    string, is an address on `channel`. `tags` are added to every contact.
    """

    def __init__(
        self,
        channels: Collection[str],
        *,
        channel: str | None = None,
        names: Mapping[str, str] | None = None,
        tags: Sequence[str] = (),
        is_table: bool = False,
    ) -> None:
        self._channels = {name.lower(): name for name in channels}
        self._usual = None if channel is None else self._channel(channel, "channel")
        self._targets = {normalize_column(column): self._target(said) for said, column in (names or {}).items()}
        self._tags = contact_fields.read_tags(tags)
        self.is_table = is_table  # all rows have the same columns
        self.attributes: set[str] = set()  # columns imported as attributes

    def check(self, header: Collection[str]) -> None:
        """Check the header against the mapping before any row is imported; raises Invalid."""
        for column in self._targets:
            if column not in header:
                raise Invalid(
                    f"there is no column {column[:60]!r}", field="map", remedy=hint(column, dict.fromkeys(header))
                )
        targets = [self._targets.get(column) or self._target_of(column) for column in header]
        channels = [target.removeprefix(_PREFIX) for target in targets if target.startswith(_PREFIX)]
        for channel in channels:
            self._channel(channel, f"{_PREFIX}{channel[:60]}")
        if not channels:
            raise _no_address()

    def change(self, row: Mapping[str, Any]) -> contact_fields.ContactChange:
        """A row as a contact change; empty cells change nothing."""
        fields: dict[str, Any] = {}
        addresses: dict[str, str] = {}
        attributes: dict[str, Any] = {}
        for column, value in row.items():
            if value is None or (isinstance(value, str) and not value.strip()):
                continue
            target = self._targets.get(column) or self._target_of(column)
            if target in IMPORT_FIELDS:
                fields[target] = self._field(target, column, value)
            elif target == "addresses":
                addresses |= self._addresses(value)
            elif target.startswith(_PREFIX):
                addresses |= self._addresses({target.removeprefix(_PREFIX): value})
            elif target == "attributes":
                attributes |= _object(column, value)
            else:
                attributes[column] = value
        if not any(addresses.values()):
            raise _no_address()
        if len(self.attributes) < _MAX_REPORTED_COLUMNS:
            self.attributes.update(attributes)
        tags = fields.get("tags", ()) + self._tags
        return contact_fields.ContactChange(
            fields.get("name"),
            addresses,
            fields.get("timezone"),
            fields.get("language"),
            tags or None,
            {
                name: contact_fields.read_attribute(name, value.strip() if isinstance(value, str) else value)
                for name, value in attributes.items()
            },
            keeps_tags=True,
        )

    def _target(self, said: str) -> str:
        """The target that a mapping names; raises Invalid."""
        name = said.strip()
        if name.lower() in (*IMPORT_FIELDS, ADDRESS_COLUMN):
            return self._target_of(name.lower())
        if name.lower().startswith(_PREFIX):
            return _PREFIX + self._channel(name[len(_PREFIX) :], "map")
        raise Invalid(
            f"unknown column target {name[:60]!r}",
            field="map",
            remedy=f"use one of: {', '.join(IMPORT_FIELDS)}, address.CHANNEL",
        )

    def _target_of(self, column: str) -> str:
        """The target of a column by its own name."""
        if column == ADDRESS_COLUMN:
            if self._usual is None:
                raise Invalid(
                    "the channel of the addresses is missing",
                    field=ADDRESS_COLUMN,
                    remedy=f"give it, or name the column address.CHANNEL: {', '.join(self._channels)}",
                )
            return _PREFIX + self._usual
        return column

    def _field(self, target: str, column: str, value: object) -> Any:
        if target == "tags":
            parts = value if isinstance(value, list) else str(value).replace("|", ";").split(";")
            return contact_fields.read_tags(part for part in parts if not isinstance(part, str) or part.strip())
        if not isinstance(value, str):
            raise Invalid(f"{column[:60]} is not a string", field=column[:60], remedy="write it in quotes")
        return {
            "name": contact_fields.read_name,
            "timezone": contact_fields.read_timezone,
            "language": contact_fields.read_language,
        }[target](value)

    def _addresses(self, said: object) -> dict[str, str]:
        found = {}
        for name, address in _object("addresses", said).items():
            channel = self._channel(name, f"{_PREFIX}{name[:60]}")
            text = str(address) if isinstance(address, int) else address  # a phone number in JSON
            found[channel] = contact_fields.read_address(channel, text, self._channels.values())
        return found

    def _channel(self, name: str, field: str) -> str:
        """A channel by its name, case-insensitive because column names are lowercased."""
        known = self._channels.get(name.strip().lower())
        if known is None:
            raise contact_fields.unknown_channel(name, self._channels.values(), field)
        return known


def parse_column_names(said: Sequence[str]) -> dict[str, str]:
    """Parse mappings such as `address.sms=mobile`: the column `mobile` is an address."""
    pairs = [part.partition("=") for text in said for part in text.split(",") if part.strip()]
    for what, _, column in pairs:
        if not what.strip() or not column.strip():
            raise Invalid(f"{what[:60]!r} has no column", field="map", remedy="write name=full_name")
    return {what.strip(): column.strip() for what, _, column in pairs}


def _no_address() -> Invalid:
    return Invalid(
        "the address is missing", field=ADDRESS_COLUMN, remedy="fill a column address.CHANNEL, or map one to it"
    )


def _object(name: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Invalid(f"{name} is not an object", field=name, remedy='write {"name": "value"}')
    return value


async def import_contacts(
    rows: ReadUpload,
    contacts: ContactService,
    columns: ContactColumns,
    *,
    list_: str | None = None,
    all_or_nothing: bool = False,
    dry_run: bool = False,
    tenant: str = "default",
) -> AsyncIterator[BulkImportProgress]:
    """Create or update the contacts of an upload; `list_` is the id of a list to add them to."""
    keep = partial(contacts.keep, list_=list_, tenant=tenant)
    if all_or_nothing and not dry_run:
        refused = 0
        async for progress in _taken(rows(), columns, keep, dry_run=True):
            refused += len(progress.bad)
            if progress.bad:
                yield BulkImportProgress({"refused": len(progress.bad)}, progress.bad)
        if refused:
            return
    async for progress in _taken(rows(), columns, keep, dry_run=dry_run):
        yield progress


async def _taken(
    rows: AsyncIterator[NumberedRow],
    columns: ContactColumns,
    keep: Callable[..., Awaitable[Sequence[ContactResult]]],
    *,
    dry_run: bool,
) -> AsyncIterator[BulkImportProgress]:
    is_first = True
    async for chunk in read_chunks(rows, CHUNK):
        first = next((row for _, row in chunk if isinstance(row, dict)), None)
        if columns.is_table and is_first and first is not None:
            columns.check(first)
            is_first = False
        changes, bad = parse_chunk(chunk, columns.change)
        kept = await keep([change for _, change in changes], dry_run=dry_run) if changes else ()
        bad += [(n, one.error) for (n, _), one in zip(changes, kept, strict=True) if one.error is not None]
        counts = Counter(one.what for one in kept if one.error is None)
        yield BulkImportProgress(counts | Counter({"refused": len(bad)}), sorted(bad, key=lambda refused: refused[0]))


async def import_opt_outs(
    rows: AsyncIterator[NumberedRow],
    suppressions: SuppressionService,
    *,
    channel: str | None = None,
    tenant: str = "default",
) -> AsyncIterator[BulkImportProgress]:
    """Opt out the addresses of an upload: columns `address`, `channel` and `reason` only."""
    usual = {} if channel is None else {"channel": channel}

    def opt_out(row: Mapping[str, Any]) -> OptOut:
        given = {name: value for name, value in row.items() if value not in (None, "")}
        return read_opt_out(usual | given, suppressions.channels)

    async for chunk in read_chunks(rows, CHUNK):
        outs, bad = parse_chunk(chunk, opt_out)
        new = await suppressions.keep([out for _, out in outs], tenant=tenant)
        counts = {"created": sum(new), "unchanged": len(new) - sum(new), "refused": len(bad)}
        yield BulkImportProgress(counts, bad)
