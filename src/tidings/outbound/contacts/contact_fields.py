"""Cards: what is written down about a contact, checked and merged. Pure.

A change says only what it wants changed: what it leaves out stays, an empty text takes away.
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

LONGEST_ADDRESS = 512
LONGEST_NAME = 200
LONGEST_TAG = 64
LONGEST_VALUE = 4096
MOST_TAGS = 100
LARGEST = 32 * 1024  # characters of all attributes, as JSON
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[a-z0-9]{2,8}){0,3}", re.IGNORECASE | re.ASCII)
_NOT_IN_TAGS = ';|,"\\'

CONTACT_FIELDS: Mapping[str, Field] = {
    "name": Field("string", "what people call them", "Ada Lovelace"),
    "addresses": Field("object", "one address for each channel, by its name", {"phone": "ada"}),
    "timezone": Field("string", "their time zone", "Europe/Berlin"),
    "language": Field("string", "their language, as a code", "de"),
    "tags": Field("array", "words to choose them by", ["volunteer"]),
    "attributes": Field("object", "anything else: texts, numbers, true or false", {"city": "Bonn"}),
}


class ContactCard(NamedTuple):
    """What is known of one contact."""

    name: str = ""
    addresses: Mapping[str, str] = {}  # by channel
    timezone: str | None = None
    language: str | None = None
    tags: tuple[str, ...] = ()
    attributes: Mapping[str, Any] = {}


class ContactChange(NamedTuple):
    """What is to be changed; None leaves a field as it is, an empty text clears it."""

    name: str | None = None
    addresses: Mapping[str, str] = {}
    timezone: str | None = None
    language: str | None = None
    tags: tuple[str, ...] | None = None
    attributes: Mapping[str, Any] = {}
    keeps_tags: bool = False  # the tags are added to those that are there


def apply_change(card: ContactCard, change: ContactChange) -> ContactCard:
    """The card with the change in it."""
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
    if len(made.tags) > MOST_TAGS:
        raise Invalid(
            f"there are {len(made.tags)} tags", field="tags", remedy=f"a contact has at most {MOST_TAGS}"
        )
    if len(orjson.dumps(made.attributes)) > LARGEST:
        raise TooLarge(
            "the attributes are too large", field="attributes", remedy=f"at most {LARGEST:,} bytes are kept"
        )
    return made


def read_change(body: object, channels: Collection[str]) -> ContactChange:
    """A change out of what a caller wrote; every field of it is checked."""
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
    """A name on one line."""
    name = None if name is None else name.strip()
    if name and (len(name) > LONGEST_NAME or not name.isprintable()):
        raise Invalid(
            "the name is too long or has control characters",
            field="name",
            remedy=f"use at most {LONGEST_NAME} printable characters",
        )
    return name


def read_address(channel: str, address: object, channels: Collection[str]) -> str:
    """An address on a configured channel; empty stands for none any more."""
    field = f"addresses.{channel[:60]}"
    if channel not in channels:
        known = dict.fromkeys(channels)
        raise Invalid(
            f"there is no channel {channel[:60]!r}", field=field, remedy=unknown_channel_hint(channel, known)
        )
    if address is None:
        return ""
    if not isinstance(address, str):
        raise Invalid("the address is not a text", field=field, remedy='write it in quotes: "ada"')
    return normalize_address(address, field) if address.strip() else ""


def normalize_address(address: str, field: str = "address") -> str:
    """An address as it is kept: no space around it, an e-mail address in small letters."""
    address = address.strip()
    if not address:
        raise Invalid("the address is empty", field=field, remedy="say who is meant")
    if len(address) > LONGEST_ADDRESS or not address.isprintable():
        raise Invalid(
            "the address is too long or has control characters",
            field=field,
            remedy=f"use at most {LONGEST_ADDRESS} printable characters",
        )
    is_mail = "@" in address[1:-1] and "/" not in address  # as in message_load
    return address.translate(_SMALL) if is_mail else address


_SMALL = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}  # as the databases do it


def read_timezone(timezone: str | None) -> str | None:
    """A time zone's name; one that does not exist is told with those that sound alike."""
    timezone = None if timezone is None else timezone.strip()
    return _zone(timezone) if timezone else timezone


@lru_cache(1000)
def _zone(name: str) -> str:
    """Many rows of a file name the same few."""
    return parse_timezone(name).key


def read_language(code: str | None) -> str | None:
    """A language's code, such as `de` or `pt-BR`."""
    code = None if code is None else code.strip().replace("_", "-")
    if code and not _LANGUAGE.fullmatch(code):
        raise Invalid(
            f"{code[:60]!r} is not a language's code", field="language", remedy="use one such as de or pt-BR"
        )
    return code


def read_tags(tags: Iterable[object]) -> tuple[str, ...]:
    """Tags, each once, sorted."""
    return _sorted(read_tag(tag) for tag in tags)


def read_tag(tag: object) -> str:
    """One tag."""
    if isinstance(tag, str):
        word = tag.strip()
        if 0 < len(word) <= LONGEST_TAG and word.isprintable() and not set(word) & set(_NOT_IN_TAGS):
            return word
    raise Invalid(
        f"{str(tag)[:60]!r} is not a tag",
        field="tags",
        remedy=f"use 1 to {LONGEST_TAG} printable characters, none of {' '.join(_NOT_IN_TAGS)}",
    )


def read_attribute(name: str, value: object) -> Any:
    """A text, a number, true or false; null and an empty text stand for none any more."""
    field = f"attributes.{name[:60]}"
    if not 0 < len(name) <= 64 or not name.isprintable():
        raise Invalid(f"{name[:60]!r} is not a name", field=field, remedy="use 1 to 64 printable characters")
    if value is None:
        return ""
    if not isinstance(value, str | int | float) or (isinstance(value, int) and abs(value) >= 1 << 63):
        raise Invalid(
            f"{name[:60]} is neither text nor number",
            field=field,
            remedy="use a text, a number, true or false",
        )
    if isinstance(value, str) and len(value) > LONGEST_VALUE:
        raise TooLarge(
            f"{name[:60]} has {len(value):,} characters",
            field=field,
            remedy=f"at most {LONGEST_VALUE:,} are kept",
        )
    return value


def unknown_channel_hint(name: str, known: Mapping[str, object]) -> str:
    """What is said of a channel that is not configured."""
    return hint(name, known).replace("known fields", "configured channels")


def _changed(before: str | None, change: str | None) -> str | None:
    return before if change is None else change or None


def _kept(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: values[name] for name in sorted(values) if values[name] != ""}


def _sorted(tags: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(tags)))


# -- as stored


def encode_card(card: ContactCard) -> dict[str, Any]:
    """The columns of a card."""
    return {
        "name": card.name,
        "timezone": card.timezone,
        "language": card.language,
        "tags": orjson.dumps(card.tags).decode(),
        "attributes": orjson.dumps(card.attributes).decode(),
    }


def decode_card(row: Mapping[str, Any]) -> ContactCard:
    """The card of a row; `addresses` is a line for each, a channel and what comes after the space."""
    lines = (row["addresses"] or "").split("\n")
    return ContactCard(
        row["name"],
        dict(line.split(" ", 1) for line in lines if line),
        row["timezone"],
        row["language"],
        tuple(orjson.loads(row["tags"])),
        orjson.loads(row["attributes"]),
    )
