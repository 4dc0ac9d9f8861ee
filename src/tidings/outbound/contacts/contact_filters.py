"""Select contacts by tags, language, time zone, channel and attributes. Pure.

Lists and pages use the same function, so a saved filter and a page of contacts never disagree.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from ...inputs.fields import Field, check_fields
from ...model.errors import Invalid
from .contact_fields import ContactCard, read_attribute, read_language, read_tags, read_timezone, unknown_channel

FILTER_FIELDS: Mapping[str, Field] = {
    "tags_all": Field("array", "contacts with all of these tags", ["volunteer"]),
    "tags_any": Field("array", "contacts with at least one of these tags", ["volunteer", "donor"]),
    "tags_none": Field("array", "contacts with none of these tags", ["moved"]),
    "language": Field("string", "contacts with this language; `de` matches `de-AT` too", "de"),
    "timezone": Field("string", "contacts in this time zone", "Europe/Berlin"),
    "channel": Field("string", "contacts with an address on this channel", "phone"),
    "attributes": Field("object", "contacts whose attributes have these values", {"city": "Bonn"}),
}


class ContactFilter(NamedTuple):
    """A filter of contacts; empty conditions match all."""

    tags_all: frozenset[str] = frozenset()
    tags_any: frozenset[str] = frozenset()
    tags_none: frozenset[str] = frozenset()
    language: str | None = None
    timezone: str | None = None
    channel: str | None = None
    attributes: Mapping[str, Any] = {}

    def matches(self, card: ContactCard) -> bool:
        return (
            self.tags_all.issubset(card.tags)
            and (not self.tags_any or not self.tags_any.isdisjoint(card.tags))
            and self.tags_none.isdisjoint(card.tags)
            and (self.timezone is None or self.timezone == card.timezone)
            and (self.channel is None or self.channel in card.addresses)
            and (self.language is None or _speaks(card.language, self.language))
            and all(_same(card.attributes.get(name), value) for name, value in self.attributes.items())
        )


def read_filter(body: object, channels: Collection[str]) -> ContactFilter:
    """Parse a filter; raises Invalid, also for an empty one, which would match everybody."""
    given = {
        name: value for name, value in check_fields(body, FILTER_FIELDS).items() if value not in (None, "", [], {})
    }
    if not given:
        raise Invalid("the filter is empty", field="filter", remedy=f"use at least one of: {', '.join(FILTER_FIELDS)}")
    channel = given.get("channel")
    if channel is not None and channel not in channels:
        raise unknown_channel(channel, channels, "filter.channel")
    return ContactFilter(
        frozenset(read_tags(given.get("tags_all", ()))),
        frozenset(read_tags(given.get("tags_any", ()))),
        frozenset(read_tags(given.get("tags_none", ()))),
        read_language(given.get("language")),
        read_timezone(given.get("timezone")),
        channel,
        {name: read_attribute(name, value) for name, value in given.get("attributes", {}).items()},
    )


def serialize_filter(filter_: ContactFilter) -> dict[str, Any]:
    """The filter as request fields."""
    said = {name: sorted(value) if isinstance(value, frozenset) else value for name, value in filter_._asdict().items()}
    return {name: value for name, value in said.items() if value not in (None, [], {})}


def _speaks(language: str | None, wanted: str) -> bool:
    return language is not None and f"{language}-".lower().startswith(f"{wanted}-".lower())


def _same(value: Any, wanted: Any) -> bool:
    """Equal values, or equal as text, because CSV columns are always text."""
    return value == wanted or (value is not None and _text(value) == _text(wanted))


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
