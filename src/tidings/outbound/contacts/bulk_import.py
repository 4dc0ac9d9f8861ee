"""Intake: contacts and opt-outs out of uploads, a chunk a transaction, each row on its own.

A bad row is told with its number and passed over. Contacts are found by their addresses, so an upload can be
repeated without doubling anybody. All-or-nothing reads the upload twice: the first time nothing is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from ...inputs.fields import hint
from ...model.errors import Invalid, TidingsError
from . import contact_fields
from .service import ContactResult, ContactService
from .suppressions import OptOut, SuppressionService, read_opt_out
from .uploads import ADDRESS_COLUMN, NumberedRow, normalize_column

CHUNK = 500
IMPORT_FIELDS = ("name", "timezone", "language", "tags")
_PREFIX = "address."
_MOST_TOLD = 100  # columns that are told to have been taken for attributes

ReadUpload = Callable[[], AsyncIterator[NumberedRow]]  # reads an upload from its beginning


class BulkImportProgress(NamedTuple):
    """What became of some rows: counts of each kind, and those that were refused."""

    counts: Mapping[str, int]
    bad: Sequence[tuple[int, TidingsError]]


class ContactColumns:
    """Which column is what: `name`, `zone`, `language`, `tags`, `address.<channel>`, or an attribute.

    `names` says it where a column is called otherwise: {"address.sms": "mobile"}. A column `address`, or a
    line that is only a text, is on the channel `channel`. `tags` are put on everybody.
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
        self._targets = {
            normalize_column(column): self._target(said) for said, column in (names or {}).items()
        }
        self._tags = contact_fields.read_tags(tags)
        self.is_table = is_table  # every row has the same columns
        self.attributes: set[str] = set()  # the columns that were taken for attributes

    def check(self, header: Collection[str]) -> None:
        """Refuse a table whose columns cannot be what they are said to be, before any row is taken."""
        for column in self._targets:
            if column not in header:
                raise Invalid(
                    f"there is no column {column[:60]!r}",
                    field="map",
                    remedy=hint(column, dict.fromkeys(header)),
                )
        targets = [self._targets.get(column) or self._target_of(column) for column in header]
        channels = [target.removeprefix(_PREFIX) for target in targets if target.startswith(_PREFIX)]
        for channel in channels:
            self._channel(channel, f"{_PREFIX}{channel[:60]}")
        if not channels:
            raise _no_address()

    def change(self, row: Mapping[str, Any]) -> contact_fields.ContactChange:
        """A row as a change of whom it names; an empty cell changes nothing."""
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
        if len(self.attributes) < _MOST_TOLD:
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
        """What somebody says a column is."""
        name = said.strip()
        if name.lower() in (*IMPORT_FIELDS, ADDRESS_COLUMN):
            return self._target_of(name.lower())
        if name.lower().startswith(_PREFIX):
            return _PREFIX + self._channel(name[len(_PREFIX) :], "map")
        raise Invalid(
            f"{name[:60]!r} is nothing that a column can be",
            field="map",
            remedy=f"use one of: {', '.join(IMPORT_FIELDS)}, address.CHANNEL",
        )

    def _target_of(self, column: str) -> str:
        """What a column is by its own name."""
        if column == ADDRESS_COLUMN:
            if self._usual is None:
                raise Invalid(
                    "nothing says on which channel the addresses are",
                    field=ADDRESS_COLUMN,
                    remedy=f"name it, or call the column address.CHANNEL: {', '.join(self._channels)}",
                )
            return _PREFIX + self._usual
        return column

    def _field(self, target: str, column: str, value: object) -> Any:
        if target == "tags":
            parts = value if isinstance(value, list) else str(value).replace("|", ";").split(";")
            return contact_fields.read_tags(
                part for part in parts if not isinstance(part, str) or part.strip()
            )
        if not isinstance(value, str):
            raise Invalid(f"{column[:60]} is not a text", field=column[:60], remedy="write it in quotes")
        return {
            "name": contact_fields.read_name,
            "timezone": contact_fields.read_timezone,
            "language": contact_fields.read_language,
        }[target](value)

    def _addresses(self, said: object) -> dict[str, str]:
        found = {}
        for name, address in _object("addresses", said).items():
            channel = self._channel(name, f"{_PREFIX}{name[:60]}")
            text = (
                str(address) if isinstance(address, int) else address
            )  # a number in JSON may be a telephone's
            found[channel] = contact_fields.read_address(channel, text, self._channels.values())
        return found

    def _channel(self, name: str, field: str) -> str:
        """A channel by its name in any capitals, because headings are read in small letters."""
        known = self._channels.get(name.strip().lower())
        if known is None:
            remedy = contact_fields.unknown_channel_hint(name, dict.fromkeys(self._channels.values()))
            raise Invalid(f"there is no channel {name[:60]!r}", field=field, remedy=remedy)
        return known


def parse_column_names(said: Sequence[str]) -> dict[str, str]:
    """What columns are: `address.sms=mobile` says that the column `mobile` is an address."""
    pairs = [part.partition("=") for text in said for part in text.split(",") if part.strip()]
    for what, _, column in pairs:
        if not what.strip() or not column.strip():
            raise Invalid(
                f"{what[:60]!r} does not say which column it is", field="map", remedy="write name=full_name"
            )
    return {what.strip(): column.strip() for what, _, column in pairs}


def _no_address() -> Invalid:
    return Invalid(
        "there is no address",
        field=ADDRESS_COLUMN,
        remedy="fill a column address.CHANNEL, or say which one it is",
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
    """Create or change the contacts of an upload; `list_` is the id of a list they are put on."""

    async def keep(changes: Sequence[contact_fields.ContactChange], dry_run: bool) -> Sequence[ContactResult]:
        return await contacts.keep(changes, list_=list_, tenant=tenant, dry_run=dry_run)

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
    keep: Callable[[Sequence[contact_fields.ContactChange], bool], Any],
    *,
    dry_run: bool,
) -> AsyncIterator[BulkImportProgress]:
    is_first = True
    async for chunk in _chunks(rows):
        first = next((row for _, row in chunk if isinstance(row, dict)), None)
        if columns.is_table and is_first and first is not None:
            columns.check(first)
            is_first = False
        numbers, changes = list[int](), list[contact_fields.ContactChange]()
        bad: list[tuple[int, TidingsError]] = []
        for number, row in chunk:
            try:
                if isinstance(row, TidingsError):
                    raise row
                changes.append(columns.change(row))
                numbers.append(number)
            except TidingsError as error:
                bad.append((number, error))
        kept: Sequence[ContactResult] = await keep(changes, dry_run) if changes else ()
        bad += [(n, one.error) for n, one in zip(numbers, kept, strict=True) if one.error is not None]
        counts = Counter(one.what for one in kept if one.error is None)
        yield BulkImportProgress(
            counts | Counter({"refused": len(bad)}), sorted(bad, key=lambda told: told[0])
        )


async def import_opt_outs(
    rows: AsyncIterator[NumberedRow],
    suppressions: SuppressionService,
    *,
    channel: str | None = None,
    tenant: str = "default",
) -> AsyncIterator[BulkImportProgress]:
    """Opt out everybody of an upload: columns `address`, `channel` and `reason`, any other is refused."""
    usual = {} if channel is None else {"channel": channel}
    async for chunk in _chunks(rows):
        outs: list[OptOut] = []
        bad: list[tuple[int, TidingsError]] = []
        for number, row in chunk:
            try:
                if isinstance(row, TidingsError):
                    raise row
                said = {name: value for name, value in row.items() if value not in (None, "")}
                outs.append(read_opt_out(usual | said, suppressions.channels))
            except TidingsError as error:
                bad.append((number, error))
        new = await suppressions.keep(outs, tenant=tenant)
        counts = {"created": sum(new), "unchanged": len(new) - sum(new), "refused": len(bad)}
        yield BulkImportProgress(counts, bad)


async def _chunks(rows: AsyncIterator[NumberedRow]) -> AsyncIterator[list[NumberedRow]]:
    chunk: list[NumberedRow] = []
    async for row in rows:
        chunk.append(row)
        if len(chunk) == CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
