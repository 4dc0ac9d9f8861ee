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
from ..people.audience import Recipient as Person
from ..people.cards import written
from .recipients import Numbered, Recipient

SLICE = 100  # rows that are gathered without giving way
LARGEST = 8 << 20  # bytes of rows that are gathered at the most

People = Callable[[Sequence[str]], Awaitable[Mapping[str, Person]]]


class Matched(NamedTuple):
    """A row of a stream, with its contact if there is one."""

    number: int
    mark: bytes  # what a repeated upload is told by
    said: Recipient | TidingsError


async def matched(
    rows: AsyncIterator[Numbered], people: People, *, most: int, after: int = 0
) -> AsyncIterator[Matched]:
    """All rows in their order, gathered by `most`; the first `after` are known, and nobody asks for them."""
    gathered, size, seen = list[Matched](), 0, 0
    async for number, said in rows:
        seen += 1
        if not seen % SLICE:
            await asyncio.sleep(0)
        row = Matched(number, mark(said), said)
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


async def _with_contacts(rows: Sequence[Matched], people: People) -> Sequence[Matched]:
    addresses = [_asked(row.said) for row in rows]
    wanted = dict.fromkeys(address for address in addresses if address is not None)
    known = await people(list(wanted)) if wanted else {}
    return [_met(row, known.get(address or "")) for row, address in zip(rows, addresses, strict=True)]


def _met(row: Matched, person: Person | None) -> Matched:
    if person is None or isinstance(row.said, TidingsError):
        return row
    return Matched(row.number, row.mark, introduced(row.said, person))


def _asked(said: Recipient | TidingsError) -> str | None:
    """The address whose contact is wanted; None where it is known, or no address at all."""
    if isinstance(said, TidingsError) or said.contact is not None:
        return None
    try:
        return written(said.address)
    except TidingsError:
        return None  # told when the row is judged


def introduced(said: Recipient, person: Person) -> Recipient:
    """The row with what is known of its contact; what the row says itself wins, unless it is empty."""
    own = {name: value for name, value in said.variables.items() if value is not None and value != ""}
    variables = {**said.variables, **person.variables, **own}
    if said.zone:
        return Recipient(said.address, said.zone, person.contact, variables, person._replace(zone=said.zone))
    return Recipient(said.address, person.zone, person.contact, variables, person)


def mark(said: Recipient | TidingsError) -> bytes:
    """What a repeated upload is told by."""
    if isinstance(said, TidingsError):
        return b"\x00" + said.problem.encode("utf-8", "replace")
    plain = f"\x01{said.address}\x02{said.zone or ''}\x03{said.contact or ''}".encode("utf-8", "replace")
    return plain + orjson.dumps(said.variables, option=orjson.OPT_SORT_KEYS) if said.variables else plain
