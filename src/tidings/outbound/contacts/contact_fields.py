"""Parse, normalize and merge the fields of a contact. Pure.

A change contains only changed fields: omitted ones stay, an empty string clears one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from ...inputs.fields import Field, check_fields, hint
from ...inputs.timezones import parse_timezone
from ...model.errors import Invalid, TooLarge

MAX_ADDRESS_LENGTH = 512
MAX_NAME_LENGTH = 200
MAX_TAG_LENGTH = 64
MAX_VALUE_LENGTH = 4096
MAX_TAGS = 100
MAX_ATTRIBUTES_SIZE = 32 * 1024  # characters of all attributes, as JSON
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[a-z0-9]{2,8}){0,3}", re.IGNORECASE | re.ASCII)
_NOT_IN_TAGS = ';|,"\\'

CONTACT_FIELDS: Mapping[str, Field] = {
    "name": Field("string", "display name", "Ada Lovelace"),
    "addresses": Field("object", "one address per channel, by channel name", {"phone": "ada"}),
    "timezone": Field("string", "time zone", "Europe/Berlin"),
    "language": Field("string", "language code", "de"),
    "tags": Field("array", "tags for filters", ["volunteer"]),
    "attributes": Field("object", "custom fields: strings, numbers, booleans", {"city": "Bonn"}),
}


class ContactCard(NamedTuple):
    """The fields of a contact."""

    name: str = ""
    addresses: Mapping[str, str] = {}  # by channel
    timezone: str | None = None
    language: str | None = None
    tags: tuple[str, ...] = ()
    attributes: Mapping[str, Any] = {}


class ContactChange(NamedTuple):
    """A change; None keeps a field, an empty string clears it."""

    name: str | None = None
    addresses: Mapping[str, str] = {}
    timezone: str | None = None
    language: str | None = None
    tags: tuple[str, ...] | None = None
    attributes: Mapping[str, Any] = {}
    keeps_tags: bool = False  # add the tags to the existing ones


def apply_change(card: ContactCard, change: ContactChange) -> ContactCard:
    """Apply a change; raises Invalid or TooLarge if a limit is exceeded."""
    tags = card.tags
    if change.tags is not None:
        tags = _sorted(card.tags + change.tags if change.keeps_tags else change.tags)
    made = ContactCard(
        card.name if change.name is None else change.name,
        _kept({**card.addresses, **change.addresses}),
        _changed(card.timezone, change.timezone),
        _changed(card.language, change.language),
        tags,
        _kept({**card.attributes, **change.attributes}),
    )
    if len(made.tags) > MAX_TAGS:
        raise Invalid(f"the contact has {len(made.tags)} tags", field="tags", remedy=f"use at most {MAX_TAGS}")
    if len(orjson.dumps(made.attributes)) > MAX_ATTRIBUTES_SIZE:
        raise TooLarge(
            "the attributes are too large", field="attributes", remedy=f"use at most {MAX_ATTRIBUTES_SIZE:,} bytes"
        )
    return made


def read_change(body: object, channels: Collection[str]) -> ContactChange:
    """Parse a change; raises Invalid."""
    given = check_fields(body, CONTACT_FIELDS)
    addresses = given.get("addresses") or {}
    attributes = given.get("attributes") or {}
    tags = given.get("tags")
    return ContactChange(
        read_name(given.get("name")),
        {channel: read_address(channel, address, channels) for channel, address in addresses.items()},
        read_timezone(given.get("timezone")),
        read_language(given.get("language")),
        None if tags is None else read_tags(tags),
        {name: read_attribute(name, value) for name, value in attributes.items()},
    )


# -- each field


def read_name(name: str | None) -> str | None:
    """Check a name; raises Invalid."""
    name = None if name is None else name.strip()
    return check_printable(name, "name", "name", MAX_NAME_LENGTH) if name else name


def read_address(channel: str, address: object, channels: Collection[str]) -> str:
    """Check an address on a configured channel; empty removes it."""
    field = f"addresses.{channel[:60]}"
    if channel not in channels:
        raise unknown_channel(channel, channels, field)
    if address is None:
        return ""
    if not isinstance(address, str):
        raise Invalid("the address is not a string", field=field, remedy='write it in quotes: "ada"')
    return normalize_address(address, field) if address.strip() else ""


def normalize_address(address: str, field: str = "address") -> str:
    """A normalized address: trimmed, email addresses lowercase; raises Invalid."""
    address = address.strip()
    if not address:
        raise Invalid("the address is empty", field=field, remedy="give the recipient's address")
    check_printable(address, "address", field, MAX_ADDRESS_LENGTH)
    is_mail = "@" in address[1:-1] and "/" not in address  # as in message_load
    return address.translate(_LOWERCASE) if is_mail else address


_LOWERCASE = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}  # ASCII only, as in the databases


def read_timezone(timezone: str | None) -> str | None:
    """Check a time zone name; raises Invalid with similar names."""
    timezone = None if timezone is None else timezone.strip()
    return _zone(timezone) if timezone else timezone


@lru_cache(1000)
def _zone(name: str) -> str:
    """Cached, because the rows of a file repeat few names."""
    return parse_timezone(name).key


def read_language(code: str | None) -> str | None:
    """Check a language code, such as `de` or `pt-BR`; raises Invalid."""
    code = None if code is None else code.strip().replace("_", "-")
    if code and not _LANGUAGE.fullmatch(code):
        raise Invalid(f"{code[:60]!r} is not a language code", field="language", remedy="use one such as de or pt-BR")
    return code


def read_tags(tags: Iterable[object]) -> tuple[str, ...]:
    """Check tags; returns them sorted and unique."""
    return _sorted(read_tag(tag) for tag in tags)


def read_tag(tag: object) -> str:
    """Check one tag; raises Invalid."""
    if isinstance(tag, str):
        word = tag.strip()
        if 0 < len(word) <= MAX_TAG_LENGTH and word.isprintable() and not set(word) & set(_NOT_IN_TAGS):
            return word
    raise Invalid(
        f"{str(tag)[:60]!r} is not a valid tag",
        field="tags",
        remedy=f"use 1 to {MAX_TAG_LENGTH} printable characters, none of {' '.join(_NOT_IN_TAGS)}",
    )


def read_attribute(name: str, value: object) -> Any:
    """Check an attribute: a string, number or boolean; null and an empty string remove it."""
    field = f"attributes.{name[:60]}"
    if not 0 < len(name) <= 64 or not name.isprintable():
        raise Invalid(f"{name[:60]!r} is not a valid name", field=field, remedy="use 1 to 64 printable characters")
    if value is None:
        return ""
    if not isinstance(value, str | int | float) or (isinstance(value, int) and abs(value) >= 1 << 63):
        raise Invalid(
            f"{name[:60]} is not a string, number or boolean",
            field=field,
            remedy="use a string, a number, true or false",
        )
    if isinstance(value, str) and len(value) > MAX_VALUE_LENGTH:
        raise TooLarge(
            f"{name[:60]} has {len(value):,} characters", field=field, remedy=f"use at most {MAX_VALUE_LENGTH:,}"
        )
    return value


def check_printable(text: str, what: str, field: str, most: int) -> str:
    """Check the length and characters of a text; raises Invalid."""
    if len(text) > most or not text.isprintable():
        remedy = f"use at most {most} printable characters"
        raise Invalid(f"the {what} is too long or has control characters", field=field, remedy=remedy)
    return text


def unknown_channel(name: str, channels: Iterable[str], field: str) -> Invalid:
    """The error for a channel that is not configured."""
    remedy = hint(name, dict.fromkeys(channels)).replace("known fields", "configured channels")
    return Invalid(f"there is no channel {name[:60]!r}", field=field, remedy=remedy)


def _changed(before: str | None, change: str | None) -> str | None:
    return before if change is None else change or None


def _kept(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: values[name] for name in sorted(values) if values[name] != ""}


def _sorted(tags: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(tags)))


# -- as stored


def encode_card(card: ContactCard) -> dict[str, Any]:
    """The contact as columns."""
    return {
        "name": card.name,
        "timezone": card.timezone,
        "language": card.language,
        "tags": orjson.dumps(card.tags).decode(),
        "attributes": orjson.dumps(card.attributes).decode(),
    }


def decode_card(row: Mapping[str, Any]) -> ContactCard:
    """Parse a row; `addresses` has one line per address: channel, space, address."""
    lines = (row["addresses"] or "").split("\n")
    return ContactCard(
        row["name"],
        dict(line.split(" ", 1) for line in lines if line),
        row["timezone"],
        row["language"],
        tuple(orjson.loads(row["tags"])),
        orjson.loads(row["attributes"]),
    )
