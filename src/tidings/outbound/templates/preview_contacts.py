"""The contact that a template is previewed with: given, found by address, or a sample."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from ...inputs.fields import hint
from ...inputs.timezones import parse_timezone
from ...model.errors import Invalid, NotFound
from ...store.port import Store
from .variables import CONTACT_FIELDS

SAMPLE_CONTACT: Mapping[str, Any] = {
    "name": "Ada Example",
    "timezone": None,
    "language": None,
    "tags": [],
    "attributes": {},
}


async def preview_contact(store: Store, given: Mapping[str, Any], tenant: str) -> Mapping[str, Any]:
    """The contact of a preview: as given, as stored under its address, or a sample."""
    if given.get("contact") is not None:
        return {**SAMPLE_CONTACT, **_checked_contact(given["contact"])}
    if given.get("channel") is None or given.get("to") is None:
        return SAMPLE_CONTACT
    found = await contact_at_address(store, tenant, given["channel"], given["to"])
    if found is None:
        raise NotFound(
            f"no contact has the address {given['to'][:100]!r} on {given['channel'][:100]!r}",
            field="to",
            remedy="give the contact itself: name, zone, language, tags, attributes",
        )
    return found


async def contact_at_address(store: Store, tenant: str, channel: str, address: str) -> Mapping[str, Any] | None:
    """The contact with this address, as templates see it."""
    rows = await store.read("template_contact", tenant=tenant, channel=channel, address=address)
    if not rows:
        return None
    row = rows[0]
    return {**row, "tags": orjson.loads(row["tags"]), "attributes": orjson.loads(row["attributes"])}


def _checked_contact(given: dict[str, Any]) -> dict[str, Any]:
    """Check a contact given for a preview; raises Invalid."""
    for name, value in given.items():
        if name not in CONTACT_FIELDS:
            raise Invalid(
                f"a contact has no field {name[:60]!r}",
                field=f"contact.{name[:60]}",
                remedy=hint(name, dict.fromkeys(CONTACT_FIELDS)),
            )
        kind, words, example = _KINDS[name]
        if value is not None and not isinstance(value, kind):
            raise Invalid(f"contact.{name} is not {words}", field=f"contact.{name}", remedy=f"for example {example}")
    if given.get("timezone") is not None:
        parse_timezone(given["timezone"], field="contact.timezone")
    return {name: value for name, value in given.items() if value is not None}


_KINDS: Mapping[str, tuple[type, str, str]] = {
    "name": (str, "a string", '"Ada"'),
    "timezone": (str, "a string", '"Europe/Berlin"'),
    "language": (str, "a string", '"de"'),
    "tags": (list, "a list", '["volunteer"]'),
    "attributes": (dict, "an object", '{"city": "Bergen"}'),
}
