"""Parse recipients from requests, uploads and contact lists. Only their shape is checked here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, NamedTuple

import orjson

from ...model.errors import Invalid, TidingsError
from ..contacts.contact_lists import ListRecipient as Person
from ..templates.depth_limit import check_depth

ADDRESS_COLUMNS = ("address", "to")


class BroadcastRecipient(NamedTuple):
    """One recipient of a broadcast."""

    address: str
    timezone: str | None = None
    contact: str | None = None
    variables: Mapping[str, Any] = {}
    person: Person | None = None  # the matched contact


NumberedRecipient = tuple[int, BroadcastRecipient | TidingsError]


def parse_recipient(given: object) -> BroadcastRecipient:
    """Parse an address, or an object whose unknown fields are variables; raises Invalid."""
    if isinstance(given, str):
        return BroadcastRecipient(given)
    if not isinstance(given, dict):
        raise Invalid("the recipient is neither an address nor an object", field="addresses", remedy=_EXAMPLE)
    names = [name for name in ADDRESS_COLUMNS if given.get(name) is not None]
    if len(names) != 1 or not isinstance(given[names[0]], str):
        problem = "both `address` and `to` are given" if len(names) > 1 else "the address is missing or not a string"
        raise Invalid(problem, field="address", remedy=_EXAMPLE)
    timezone, variables = given.get("timezone"), given.get("variables")
    if timezone is not None and not isinstance(timezone, str):
        raise Invalid("timezone is not a string", field="timezone", remedy='for example "Europe/Berlin"')
    if isinstance(variables, str):  # a CSV cell
        variables = _unpacked(variables)
    if variables is not None and not isinstance(variables, dict):
        raise Invalid("variables is not an object", field="variables", remedy=_EXAMPLE)
    rest = {name: value for name, value in given.items() if name not in (*ADDRESS_COLUMNS, "timezone", "variables")}
    rest |= variables or {}
    if any(isinstance(value, dict | list) for value in rest.values()):
        check_depth(rest, "variables")
    return BroadcastRecipient(given[names[0]], timezone or None, None, rest)


def _unpacked(cell: str) -> object:
    """A JSON object in a CSV cell, as an export writes it."""
    try:
        return orjson.loads(cell) if cell.strip() else None
    except orjson.JSONDecodeError:
        return cell


_EXAMPLE = 'write {"address": "ada", "timezone": "Europe/Berlin", "variables": {"name": "Ada"}}, or only "ada"'


async def number_recipients(given: Iterable[object]) -> AsyncIterator[NumberedRecipient]:
    """Recipients of a list, numbered from 1."""
    for number, entry in enumerate(given, 1):
        yield number, _read(entry)


async def from_rows(rows: AsyncIterator[tuple[int, object]]) -> AsyncIterator[NumberedRecipient]:
    """Recipients of an upload."""
    async for number, row in rows:
        yield number, row if isinstance(row, TidingsError) else _read(row)


async def from_audience(people: AsyncIterator[Person]) -> AsyncIterator[NumberedRecipient]:
    """Recipients of a contact list, numbered from 1."""
    number = 0
    async for person in people:
        number += 1
        yield (number, BroadcastRecipient(person.address, person.timezone, person.contact, person.variables, person))


def _read(given: object) -> BroadcastRecipient | TidingsError:
    try:
        return parse_recipient(given)
    except TidingsError as error:
        return error
