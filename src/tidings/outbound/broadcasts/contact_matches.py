"""Find the contact of each recipient by its address on the broadcast's channel.

Rows are looked up in chunks by index. An interrupted upload is recognized by its rows alone, so a contact
that changes meanwhile does not make it a different upload.
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

SLICE = 100  # rows read before yielding to the event loop
MAX_CHUNK_BYTES = 8 << 20  # maximum bytes of rows in one chunk

FindContacts = Callable[[Sequence[str]], Awaitable[Mapping[str, Person]]]


class MatchedRecipient(NamedTuple):
    """A row of a stream, with its contact if known."""

    number: int
    mark: bytes  # fingerprint that identifies a repeated upload
    said: BroadcastRecipient | TidingsError


async def match_contacts(
    rows: AsyncIterator[NumberedRecipient], people: FindContacts, *, most: int, after: int = 0
) -> AsyncIterator[MatchedRecipient]:
    """All rows in order, looked up in chunks of `most`; the first `after` rows need no lookup."""
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
        if len(gathered) >= most or size >= MAX_CHUNK_BYTES:
            for found in await _with_contacts(gathered, people):
                yield found
            gathered, size = [], 0
    for found in await _with_contacts(gathered, people):
        yield found


async def _with_contacts(rows: Sequence[MatchedRecipient], people: FindContacts) -> Sequence[MatchedRecipient]:
    addresses = [_asked(row.said) for row in rows]
    wanted = dict.fromkeys(address for address in addresses if address is not None)
    known = await people(list(wanted)) if wanted else {}
    return [_met(row, known.get(address or "")) for row, address in zip(rows, addresses, strict=True)]


def _met(row: MatchedRecipient, person: Person | None) -> MatchedRecipient:
    if person is None or isinstance(row.said, TidingsError):
        return row
    return MatchedRecipient(row.number, row.mark, merge_contact(row.said, person))


def _asked(said: BroadcastRecipient | TidingsError) -> str | None:
    """The address to look up; None if the contact is known or the row is invalid."""
    if isinstance(said, TidingsError) or said.contact is not None:
        return None
    try:
        return normalize_address(said.address)
    except TidingsError:
        return None  # reported when the row is validated


def merge_contact(said: BroadcastRecipient, person: Person) -> BroadcastRecipient:
    """The row merged with its contact; non-empty values of the row win."""
    own = {name: value for name, value in said.variables.items() if value is not None and value != ""}
    variables = {**said.variables, **person.variables, **own}
    if said.timezone:
        return BroadcastRecipient(
            said.address, said.timezone, person.contact, variables, person._replace(timezone=said.timezone)
        )
    return BroadcastRecipient(said.address, person.timezone, person.contact, variables, person)


def row_fingerprint(said: BroadcastRecipient | TidingsError) -> bytes:
    """The fingerprint of a row, to recognize a repeated upload."""
    if isinstance(said, TidingsError):
        return b"\x00" + said.problem.encode("utf-8", "replace")
    plain = f"\x01{said.address}\x02{said.timezone or ''}\x03{said.contact or ''}".encode("utf-8", "replace")
    return plain + orjson.dumps(said.variables, option=orjson.OPT_SORT_KEYS) if said.variables else plain
