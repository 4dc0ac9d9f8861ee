"""Matching: a row whose address a contact has on the broadcast's channel gets that contact.

Rows are gathered, and one indexed look-up asks for all of them. A broken upload is told by what its rows say,
so a contact that changes between two tries makes it no other upload.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

import orjson

from ...model.errors import TidingsError
from ..contacts.contact_fields import normalize_address
from ..contacts.contact_lists import ListRecipient as Person
from .recipient_parser import BroadcastRecipient, NumberedRecipient

SLICE = 100  # rows that are gathered without giving way
LARGEST = 8 << 20  # bytes of rows that are gathered at the most

FindContacts = Callable[[Sequence[str]], Awaitable[Mapping[str, Person]]]


class MatchedRecipient(NamedTuple):
    """A row of a stream, with its contact if there is one."""

    number: int
    mark: bytes  # what a repeated upload is told by
    said: BroadcastRecipient | TidingsError


async def match_contacts(
    rows: AsyncIterator[NumberedRecipient], people: FindContacts, *, most: int, after: int = 0
) -> AsyncIterator[MatchedRecipient]:
    """All rows in their order, gathered by `most`; the first `after` are known, and nobody asks for them."""
    gathered, size, seen = list[MatchedRecipient](), 0, 0
    async for number, said in rows:
        seen += 1
        if not seen % SLICE:
            await asyncio.sleep(0)
        row = MatchedRecipient(number, row_fingerprint(said), said)
        if seen <= after:
            yield row
            continue
        gathered.append(row)
        size += len(row.mark)
        if len(gathered) >= most or size >= LARGEST:
            for found in await _with_contacts(gathered, people):
                yield found
            gathered, size = [], 0
    for found in await _with_contacts(gathered, people):
        yield found


async def _with_contacts(
    rows: Sequence[MatchedRecipient], people: FindContacts
) -> Sequence[MatchedRecipient]:
    addresses = [_asked(row.said) for row in rows]
    wanted = dict.fromkeys(address for address in addresses if address is not None)
    known = await people(list(wanted)) if wanted else {}
    return [_met(row, known.get(address or "")) for row, address in zip(rows, addresses, strict=True)]


def _met(row: MatchedRecipient, person: Person | None) -> MatchedRecipient:
    if person is None or isinstance(row.said, TidingsError):
        return row
    return MatchedRecipient(row.number, row.mark, merge_contact(row.said, person))


def _asked(said: BroadcastRecipient | TidingsError) -> str | None:
    """The address whose contact is wanted; None where it is known, or no address at all."""
    if isinstance(said, TidingsError) or said.contact is not None:
        return None
    try:
        return normalize_address(said.address)
    except TidingsError:
        return None  # told when the row is judged


def merge_contact(said: BroadcastRecipient, person: Person) -> BroadcastRecipient:
    """The row with what is known of its contact; what the row says itself wins, unless it is empty."""
    own = {name: value for name, value in said.variables.items() if value is not None and value != ""}
    variables = {**said.variables, **person.variables, **own}
    if said.timezone:
        return BroadcastRecipient(
            said.address, said.timezone, person.contact, variables, person._replace(timezone=said.timezone)
        )
    return BroadcastRecipient(said.address, person.timezone, person.contact, variables, person)


def row_fingerprint(said: BroadcastRecipient | TidingsError) -> bytes:
    """What a repeated upload is told by."""
    if isinstance(said, TidingsError):
        return b"\x00" + said.problem.encode("utf-8", "replace")
    plain = f"\x01{said.address}\x02{said.timezone or ''}\x03{said.contact or ''}".encode("utf-8", "replace")
    return plain + orjson.dumps(said.variables, option=orjson.OPT_SORT_KEYS) if said.variables else plain
