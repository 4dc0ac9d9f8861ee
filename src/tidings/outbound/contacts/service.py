"""Create, edit, find, list and remove contacts.

A contact has one address per channel, and an address belongs to one contact. Writes use optimistic
concurrency: a change is planned from what was read, and planned again if another writer was faster.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import orjson

from ...inputs.pagination import Page, invalid_cursor, page_size
from ...kernel.clock import Clock
from ...model.errors import Conflict, Invalid, NotFound, StoreUnavailable, TidingsError
from ...model.time import iso
from ...store.port import Row, Step, Store, WriteConflict
from ..idempotency import KEEP_KEYS, CreateResult, create_once, find_replay, optional_key
from .contact_fields import (
    ContactCard,
    ContactChange,
    apply_change,
    decode_card,
    encode_card,
    normalize_address,
    read_change,
)
from .contact_filters import ContactFilter

MAX_ATTEMPTS = 5  # of a change that conflicts with concurrent ones
WINDOW = 2000  # maximum contacts scanned for one page
SCANNED = 1000  # contacts read at a time for a filter
NEWEST = "~"  # sorts after every id

ChannelAddress = tuple[str, str]  # channel, address


class StoredContact(NamedTuple):
    id: str
    card: ContactCard
    created_at: int
    changed_at: int


class ContactResult(NamedTuple):
    """The result of one change: created, changed, unchanged, or refused with an error."""

    id: str | None
    what: str
    error: TidingsError | None = None


class ContactChangePlan(NamedTuple):
    """What to write, and the result of each change."""

    new: Sequence[StoredContact]
    changed: Sequence[tuple[StoredContact, StoredContact]]  # before, after
    kept: Sequence[ContactResult]


class ContactService:
    """Contact operations of the API, CLI and dashboard."""

    def __init__(self, store: Store, clock: Clock, channels: Collection[str]) -> None:
        self._store = store
        self._clock = clock
        self.channels = tuple(channels)

    # -- writing

    async def create(self, body: object, *, key: str | None = None, tenant: str = "default") -> CreateResult:
        """Create a contact; raises Conflict if an address is taken. Idempotent with a key."""
        now = self._clock.now()
        keyed = partial(optional_key, "contacts", key, body, tenant=tenant, until=now + KEEP_KEYS)
        if (found := await find_replay(self._store, keyed(None))) is not None:
            return found
        card = apply_change(ContactCard(), read_change(body, self.channels))
        known = StoredContact(self._clock.new_id(), card, now, now)
        await self._refuse_taken(known, tenant)
        answer = serialize_contact(known)
        steps = _steps(ContactChangePlan([known], [], []), tenant)
        try:
            return await create_once(self._store, steps, answer, keyed(answer))
        except WriteConflict:
            await self._refuse_taken(known, tenant)
            raise _busy() from None

    async def put(self, body: object, *, tenant: str = "default") -> tuple[Row, bool]:
        """Create the contact, or update the owner of one of its addresses; returns whether it is new."""
        change = read_change(body, self.channels)
        if not any(change.addresses.values()):
            raise Invalid(
                "the contact has no address",
                field="addresses",
                remedy='give at least one: {"addresses": {"phone": "ada"}}',
            )
        kept = (await self.keep([change], tenant=tenant))[0]
        if kept.error is not None:
            raise kept.error
        return await self.show(str(kept.id), tenant=tenant), kept.what == "created"

    async def edit(self, id_: str, body: object, *, tenant: str = "default") -> Row:
        """Change the given fields; omitted ones stay."""
        change = read_change(body, self.channels)
        for _ in range(MAX_ATTEMPTS):
            before = await self.find(id_, tenant=tenant)
            after = _after(before, apply_change(before.card, change), self._clock.now())
            if after.card == before.card:
                return serialize_contact(before)
            await self._refuse_taken(after, tenant)
            try:
                await self._store.write(_steps(ContactChangePlan([], [(before, after)], []), tenant))
            except WriteConflict:
                continue
            return serialize_contact(after)
        raise _busy()

    async def keep(
        self,
        changes: Sequence[ContactChange],
        *,
        list_: str | None = None,
        tenant: str = "default",
        dry_run: bool = False,
    ) -> Sequence[ContactResult]:
        """Create or update many in one transaction, matched by their addresses.

        Refused ones are reported and do not affect the others. `list_` is the id of a list to add all of them
        to. A dry run writes nothing.
        """
        places = [place for change in changes for place in change.addresses.items() if place[1]]
        for _ in range(MAX_ATTEMPTS):
            owners = await self._owners(places, tenant)
            plan = plan_changes(changes, owners, now=self._clock.now(), new_id=self._clock.new_id)
            steps = _steps(plan, tenant)
            ids = list(dict.fromkeys(kept.id for kept in plan.kept if kept.id is not None))
            if list_ is not None and ids:
                steps.append(Step("list_member_add", _ids(ids, list=list_, tenant=tenant)))
            if dry_run or not steps:
                return plan.kept
            try:
                await self._store.write(steps)
            except WriteConflict:
                continue
            return plan.kept
        raise _busy()

    async def remove(self, id_: str, *, tenant: str = "default") -> None:
        """Delete a contact, its addresses and list memberships; opt-outs stay."""
        gone = await self._store.write(
            [
                Step("contact_remove", {"id": id_, "tenant": tenant}),
                Step("contact_address_clear", {"id": id_}, only_if=0),
                Step("list_member_forget", {"id": id_}, only_if=0),
            ]
        )
        if not gone[0]:
            raise _missing(id_)

    # -- finding

    async def find(self, id_: str, *, tenant: str = "default") -> StoredContact:
        """One contact as stored; raises NotFound."""
        rows = await self._store.read("contact_find", id=id_, tenant=tenant)
        if not rows:
            raise _missing(id_)
        return read_contact(rows[0])

    async def show(self, id_: str, *, tenant: str = "default") -> Row:
        """One contact as API fields; raises NotFound."""
        return serialize_contact(await self.find(id_, tenant=tenant))

    async def at(self, channel: str, address: str, *, tenant: str = "default") -> Row | None:
        """The contact with this address on this channel, if any."""
        found = await self._owners([(channel, normalize_address(address))], tenant)
        return serialize_contact(*found.values()) if found else None

    async def page(
        self,
        filter_: ContactFilter | None = None,
        *,
        tenant: str = "default",
        limit: int = 50,
        after: str | None = None,
    ) -> Page:
        """Contacts, newest first. Each page scans a bounded number, so it may be short."""
        page_size(limit)

        async def read(before: str, size: int) -> Sequence[Row]:
            return await self._store.read("contact_page", tenant=tenant, before=before, limit=size)

        return await scan_page(read, filter_, id_cursor(after) or NEWEST, limit)

    async def have(self, ids: Sequence[str], *, tenant: str = "default") -> set[str]:
        """Which of these ids exist."""
        rows = await self._store.read("contact_have", **_ids(ids, tenant=tenant))
        return {row["id"] for row in rows}

    # -- helpers

    async def _owners(self, addresses: Iterable[ChannelAddress], tenant: str) -> dict[ChannelAddress, StoredContact]:
        wanted = [{"channel": channel, "address": address} for channel, address in dict.fromkeys(addresses)]
        if not wanted:
            return {}
        rows = await self._store.read("contact_owners", wanted=orjson.dumps(wanted).decode(), tenant=tenant)
        return {(row["on_channel"], row["at_address"]): read_contact(row) for row in rows}

    async def _refuse_taken(self, known: StoredContact, tenant: str) -> None:
        """Raise Conflict, naming the owner, if an address belongs to another contact."""
        for (channel, address), owner in (await self._owners(known.card.addresses.items(), tenant)).items():
            if owner.id != known.id:
                raise Conflict(
                    f"{address!r} on {channel} belongs to another contact, {owner.id}",
                    field=f"addresses.{channel}",
                    remedy="change that contact, or remove the address from it first",
                )


async def scan_page(
    read: Callable[[str, int], Awaitable[Sequence[Row]]], filter_: ContactFilter | None, place: str, limit: int
) -> Page:
    """One page of the contacts that match; `read` returns rows after a contact id, at most so many."""
    items, seen, size = list[Row](), 0, limit if filter_ is None else SCANNED
    while seen < WINDOW:
        rows = await read(place, size)
        for row in rows:
            place = row["id"]
            known = read_contact(row)
            if filter_ is None or filter_.matches(known.card):
                items.append(serialize_contact(known))
                if len(items) == limit:
                    return Page(items, place)
        if len(rows) < size:
            return Page(items, None)
        seen += len(rows)
    return Page(items, place)


def plan_changes(
    changes: Sequence[ContactChange],
    owners: Mapping[ChannelAddress, StoredContact],
    *,
    now: int,
    new_id: Callable[[], str],
) -> ContactChangePlan:
    """Plan these changes in order; later ones see the effect of earlier ones. Pure."""
    before = {known.id: known for known in owners.values()}
    by_address = {place: known.id for place, known in owners.items()}
    cards = {id_: known.card for id_, known in before.items()}
    kept: list[ContactResult] = []
    for change in changes:
        places = [(channel, address) for channel, address in change.addresses.items() if address]
        meant = sorted({by_address[place] for place in places if place in by_address})
        try:
            if len(meant) > 1:
                raise _two(meant)
            old = cards[meant[0]] if meant else ContactCard()
            card = apply_change(old, change)
        except TidingsError as error:
            kept.append(ContactResult(None, "refused", error))
            continue
        id_ = meant[0] if meant else new_id()
        for channel in change.addresses:
            by_address.pop((channel, old.addresses.get(channel, "")), None)
        by_address |= dict.fromkeys(places, id_)
        cards[id_] = card
        kept.append(ContactResult(id_, "created" if not meant else "unchanged" if card == old else "changed"))
    new = [StoredContact(id_, card, now, now) for id_, card in cards.items() if id_ not in before]
    changed = [(known, _after(known, cards[id_], now)) for id_, known in before.items() if cards[id_] != known.card]
    return ContactChangePlan(new, changed, kept)


def _steps(plan: ContactChangePlan, tenant: str) -> list[Step]:
    """The statements of a plan; the last one rolls back if another writer was faster."""
    if not plan.new and not plan.changed:
        return []
    after = [*plan.new, *(known for _, known in plan.changed)]
    dropped, added = _moved(plan)
    new = [_columns(known) for known in plan.new]
    changed = [_columns(known) | {"was": before.changed_at} for before, known in plan.changed]
    steps = [
        Step("contact_add", _json(cards=new, tenant=tenant)) if new else None,
        Step("contact_change", _json(cards=changed, tenant=tenant)) if changed else None,
        Step("contact_address_drop", _json(addresses=dropped, tenant=tenant)) if dropped else None,
        Step("contact_address_add", _json(addresses=added, tenant=tenant)) if added else None,
        Step(
            "contact_check",
            _json(cards=[_columns(known) for known in after], addresses=added, tenant=tenant),
            needed=True,
        ),
    ]
    return [step for step in steps if step is not None]


def _moved(plan: ContactChangePlan) -> tuple[list[Row], list[Row]]:
    """The removed and added addresses, in a fixed order so that writers cannot deadlock."""
    dropped, added = list[Row](), list[Row]()
    nobody = StoredContact("", ContactCard(), 0, 0)
    for before, after in [*((nobody, known) for known in plan.new), *plan.changed]:
        old, new = before.card.addresses, after.card.addresses
        dropped += [{"contact": after.id, "channel": c} for c in old if new.get(c) != old[c]]
        added += [{"contact": after.id, "channel": c, "address": new[c]} for c in new if new[c] != old.get(c)]
    return dropped, sorted(added, key=lambda row: (row["channel"], row["address"]))


def _columns(known: StoredContact) -> Row:
    return {"id": known.id, **encode_card(known.card), "changed_at": known.changed_at}


def _after(before: StoredContact, card: ContactCard, now: int) -> StoredContact:
    return before._replace(card=card, changed_at=max(now, before.changed_at + 1))


def _json(*, tenant: str, **lists: Sequence[Any]) -> Row:
    return {"tenant": tenant, **{name: orjson.dumps(rows).decode() for name, rows in lists.items()}}


def _ids(ids: Sequence[str], **more: str) -> Row:
    return {"ids": orjson.dumps(ids).decode(), **more}


def read_contact(row: Row) -> StoredContact:
    return StoredContact(row["id"], decode_card(row), row["created_at"], row["changed_at"])


def serialize_contact(known: StoredContact) -> Row:
    """A contact as API fields."""
    return {
        "id": known.id,
        **known.card._asdict(),
        "tags": list(known.card.tags),
        "created_at": iso(known.created_at),
        "changed_at": iso(known.changed_at),
    }


def id_cursor(after: str | None) -> str:
    """The id in a cursor; empty without one."""
    if after is not None and not (0 < len(after) <= 64 and after.isascii() and after.isprintable()):
        raise invalid_cursor(after)
    return after or ""


def _missing(id_: str) -> NotFound:
    return NotFound(f"there is no contact {id_[:60]}", remedy="look it up with: tidings contacts list")


def _two(ids: Sequence[str]) -> Conflict:
    return Conflict(
        f"the addresses belong to different contacts: {', '.join(ids)}",
        field="addresses",
        remedy="write one row per contact, or remove the addresses from all but one",
    )


def _busy() -> StoreUnavailable:
    return StoreUnavailable("the contacts keep changing concurrently", remedy="repeat the call")
