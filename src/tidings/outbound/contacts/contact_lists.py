"""Contact lists with members, and saved filters, which are evaluated on each use.

Both are read with keyset pagination, a bounded number of rows at a time.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import orjson

from ...inputs.fields import Field, check_fields
from ...inputs.pagination import Page, invalid_cursor, page_size
from ...kernel.clock import Clock
from ...model.errors import Conflict, Invalid, NotFound
from ...model.time import iso
from ...store.port import Row, Step, Store, WriteConflict
from ..idempotency import KEEP_KEYS, CreateResult, create_once, find_replay, optional_key
from .contact_filters import ContactFilter, read_filter, serialize_filter
from .service import ContactService, StoredContact, id_cursor, read_contact, scan_page

MAX_COUNTED = 100_000  # members counted when a list is shown
MAX_MEMBERS_PER_CALL = 1000  # members per call
PAGE = 1000
MAX_NAME_LENGTH = 100
_NO_LIST = "see: tidings lists list; or create it: tidings lists add NAME"

LIST_FIELDS: Mapping[str, Field] = {
    "name": Field("string", "name of the list", "volunteers", required=True),
    "filter": Field("object", "conditions of a saved filter", {"tags_all": ["volunteer"]}),
}
LIST_CHANGES: Mapping[str, Field] = {name: field._replace(required=False) for name, field in LIST_FIELDS.items()}
MEMBER_FIELDS: Mapping[str, Field] = {
    "contacts": Field("array", f"ids of contacts, at most {MAX_MEMBERS_PER_CALL:,}", ["0199…"], required=True)
}


class ListRecipient(NamedTuple):
    """A contact as a recipient, with its template variables."""

    address: str
    contact: str  # the contact's id
    name: str
    timezone: str | None
    language: str | None
    tags: Sequence[str]
    attributes: Mapping[str, Any]

    @property
    def card(self) -> dict[str, Any]:
        """The contact as templates see it."""
        return {
            "name": self.name,
            "timezone": self.timezone,
            "language": self.language,
            "tags": list(self.tags),
            "attributes": dict(self.attributes),
        }

    @property
    def variables(self) -> dict[str, Any]:
        """Template variables: all attributes, and the name if there is one."""
        return {**({"name": self.name} if self.name else {}), **self.attributes}


class ContactListService:
    """List operations of the API, CLI, dashboard and broadcasts."""

    def __init__(self, store: Store, clock: Clock, contacts: ContactService) -> None:
        self._store = store
        self._clock = clock
        self._contacts = contacts

    # -- lists

    async def create(self, body: object, *, key: str | None = None, tenant: str = "default") -> CreateResult:
        """Create a list or a saved filter. Idempotent with a key."""
        now = self._clock.now()
        keyed = partial(optional_key, "lists", key, body, tenant=tenant, until=now + KEEP_KEYS)
        if (found := await find_replay(self._store, keyed(None))) is not None:
            return found
        given = check_fields(body, LIST_FIELDS)
        filter_ = given.get("filter")
        row: Row = {
            "id": self._clock.new_id(),
            "name": read_list_name(given["name"]),
            "filter": None if filter_ is None else self._filter(filter_),
            "created_at": now,
        }
        answer = self._shown(row, 0)
        step = Step("list_add", {**row, "tenant": tenant}, needed=True)
        try:
            return await create_once(self._store, [step], answer, keyed(answer))
        except WriteConflict:
            raise _taken(row["name"]) from None

    async def edit(self, which: str, body: object, *, tenant: str = "default") -> Row:
        """Change the name or filter; a list with members cannot become a filter."""
        given = check_fields(body, LIST_CHANGES)
        row = await self.find(which, tenant=tenant)
        if given.get("filter") is not None:
            if row["filter"] is None:
                raise Conflict(
                    f"{row['name']!r} is a list with members", field="filter", remedy="create a new list for it"
                )
            row["filter"] = self._filter(given["filter"])
        if given.get("name") is not None:
            row["name"] = read_list_name(given["name"])
        if not (await self._store.write([Step("list_change", {**row, "tenant": tenant})]))[0]:
            await self.find(row["id"], tenant=tenant)  # it may have been removed meanwhile
            raise _taken(row["name"])
        return await self.show(row["id"], tenant=tenant)

    async def remove(self, which: str, *, tenant: str = "default") -> None:
        """Delete a list; its contacts stay. Memberships are deleted in pages."""
        row = await self.find(which, tenant=tenant)
        await self._store.write([Step("list_remove", {"id": row["id"], "tenant": tenant})])
        page = [Step("list_clear", {"list": row["id"], "limit": PAGE})]
        while len((await self._store.write(page))[0]) == PAGE:
            pass

    async def find(self, which: str, *, tenant: str = "default") -> Row:
        """A list as stored, by id or name; raises NotFound."""
        rows = await self._store.read("list_find", which=which, tenant=tenant)
        if not rows:
            raise NotFound(f"there is no list {which[:60]!r}", remedy=_NO_LIST)
        return rows[0]

    async def show(self, which: str, *, tenant: str = "default") -> Row:
        """A list as API fields, with its member count."""
        row = await self.find(which, tenant=tenant)
        return self._shown(row, await self._count(row))

    async def page(self, *, tenant: str = "default", limit: int = 50, after: str | None = None) -> Page:
        """Lists, by name."""
        page_size(limit)
        if after is not None and (len(after) > MAX_NAME_LENGTH or not after.isprintable()):
            raise invalid_cursor(after)
        rows = await self._store.read("list_page", tenant=tenant, after=after or "", limit=limit)
        items = [self._shown(row, await self._count(row)) for row in rows]
        return Page(items, rows[-1]["name"] if len(rows) == limit else None)

    async def names(self, *, tenant: str = "default", limit: int = 200) -> list[str]:
        """The names of the first lists, for a menu."""
        rows = await self._store.read("list_page", tenant=tenant, after="", limit=limit)
        return [row["name"] for row in rows]

    # -- members

    async def with_members(self, which: str, *, tenant: str = "default") -> Row:
        """A list as stored; raises Conflict for a saved filter."""
        row = await self.find(which, tenant=tenant)
        if row["filter"] is not None:
            raise Conflict(
                f"{row['name']!r} is a saved filter, whose members are selected by their fields",
                remedy="change the contacts or the filter, or create a list without one",
            )
        return row

    async def add(self, which: str, ids: Sequence[object], *, tenant: str = "default") -> int:
        """Add contacts; returns how many are new. Raises NotFound and adds none if one is unknown."""
        row, wanted = await self.with_members(which, tenant=tenant), _read_ids(ids)
        unknown = set(wanted) - await self._contacts.have(wanted, tenant=tenant)
        if unknown:
            raise NotFound(
                f"there is no contact {min(unknown)}", field="contacts", remedy="nothing was changed; leave it out"
            )
        params = {"ids": orjson.dumps(wanted).decode(), "list": row["id"], "tenant": tenant}
        return len((await self._store.write([Step("list_member_add", params)]))[0])

    async def drop(self, which: str, ids: Sequence[object], *, tenant: str = "default") -> int:
        """Remove contacts from a list; returns how many were on it."""
        row, wanted = await self.with_members(which, tenant=tenant), _read_ids(ids)
        params = {"ids": orjson.dumps(wanted).decode(), "list": row["id"]}
        return len((await self._store.write([Step("list_member_drop", params)]))[0])

    async def members(self, which: str, *, tenant: str = "default", limit: int = 50, after: str | None = None) -> Page:
        """The members of a list, oldest contact first; pages of a filter may be short."""
        page_size(limit)
        row = await self.find(which, tenant=tenant)
        filter_ = None if row["filter"] is None else stored_filter(row["filter"])
        return await scan_page(partial(self._rows, row, tenant), filter_, id_cursor(after), limit)

    async def recipients(
        self, which: str, channel: str, *, after: str | None = None, tenant: str = "default"
    ) -> AsyncIterator[ListRecipient]:
        """Members with an address on this channel, by contact id; `after` continues from one.

        Reads in constant memory without an open transaction. Suppressed members are included: suppression is
        checked right before a send.
        """
        row = await self.find(which, tenant=tenant)
        place: str | None = id_cursor(after)
        while place is not None:
            known, place = await self._some(row, place, PAGE, tenant)
            for recipient in _reached(known, channel):
                yield recipient

    async def first(
        self, which: str, channel: str, *, most: int, tenant: str = "default"
    ) -> tuple[list[ListRecipient], bool]:
        """Recipients among the first members (or contacts, for a filter), and whether that was all."""
        known, place = await self._some(await self.find(which, tenant=tenant), "", most, tenant)
        return list(_reached(known, channel)), place is None

    async def at(self, addresses: Sequence[str], channel: str, *, tenant: str = "default") -> dict[str, ListRecipient]:
        """The contacts with these addresses on the channel, by address, in one query."""
        wanted = orjson.dumps(list(addresses)).decode()
        rows = await self._store.read("contact_reached", addresses=wanted, channel=channel, tenant=tenant)
        return {
            row["address"]: ListRecipient(
                row["address"], row["id"], row["name"], row["timezone"], row["language"],
                orjson.loads(row["tags"]), orjson.loads(row["attributes"]),
            )
            for row in rows
        }  # fmt: skip

    # -- helpers

    async def _some(
        self, row: Row, after: str, limit: int, tenant: str
    ) -> tuple[Collection[StoredContact], str | None]:
        """Members after a position, and the next position; None at the end."""
        rows = await self._rows(row, tenant, after, limit)
        known = [read_contact(one) for one in rows]
        if row["filter"] is not None:
            matches = stored_filter(row["filter"]).matches
            known = [one for one in known if matches(one.card)]
        return known, rows[-1]["id"] if len(rows) == limit else None

    async def _rows(self, row: Row, tenant: str, after: str, limit: int) -> Sequence[Row]:
        """The members of a list after a contact id, or all contacts for a filter."""
        if row["filter"] is None:
            return await self._store.read("list_members", list=row["id"], after=after, limit=limit)
        return await self._store.read("contact_walk", tenant=tenant, after=after, limit=limit)

    async def _count(self, row: Row) -> int | None:
        if row["filter"] is not None:
            return None
        counted = await self._store.read("list_count", list=row["id"], most=MAX_COUNTED)
        return int(counted[0]["n"])

    def _filter(self, body: object) -> str:
        return orjson.dumps(serialize_filter(read_filter(body, self._contacts.channels))).decode()

    def _shown(self, row: Row, count: int | None) -> Row:
        return {
            "id": row["id"],
            "name": row["name"],
            "filter": None if row["filter"] is None else orjson.loads(row["filter"]),
            "members": None if row["filter"] is not None else count,
            "created_at": iso(row["created_at"]),
        }


def _reached(known: Iterable[StoredContact], channel: str) -> Iterator[ListRecipient]:
    """Contacts with an address on a channel, as recipients."""
    for contact in known:
        address, card = contact.card.addresses.get(channel), contact.card
        if address is not None:
            yield ListRecipient(
                address, contact.id, card.name, card.timezone, card.language, card.tags, card.attributes
            )


def stored_filter(text: str) -> ContactFilter:
    """Parse a saved filter; its channel may no longer be configured."""
    said = orjson.loads(text)
    return read_filter(said, [said["channel"]] if "channel" in said else [])


def read_list_name(name: str) -> str:
    """Check a list name; raises Invalid."""
    name = name.strip()
    if not 0 < len(name) <= MAX_NAME_LENGTH or not name.isprintable() or "/" in name:
        raise Invalid(
            f"{name[:60]!r} is not a valid list name",
            field="name",
            remedy=f"use 1 to {MAX_NAME_LENGTH} printable characters, no /",
        )
    return name


def _read_ids(ids: Sequence[object]) -> list[str]:
    if not 0 < len(ids) <= MAX_MEMBERS_PER_CALL:
        raise Invalid(
            f"{len(ids):,} contacts are given", field="contacts", remedy=f"give 1 to {MAX_MEMBERS_PER_CALL:,} at a time"
        )
    for id_ in ids:
        if not isinstance(id_, str) or not 0 < len(id_) <= 64 or not id_.isprintable():
            raise Invalid(f"{str(id_)[:60]!r} is not an id", field="contacts", remedy="use ids of contacts")
    return [str(id_) for id_ in dict.fromkeys(ids)]


def _taken(name: str) -> Conflict:
    return Conflict(f"the list {name!r} already exists", field="name", remedy="use another name, or change that list")
