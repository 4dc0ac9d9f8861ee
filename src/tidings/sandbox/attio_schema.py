"""Attributes of the simulated Attio: which values they accept, and how a response shows them. No I/O.

The rules are those of Attio's pages on attribute types: a name is an object with all three parts, or a text
"Last, First" (without a comma it is the first name); a location has all ten parts, even if they are null; a deal
needs a name, a stage and an owner.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

WORKSPACE = str(UUID(int=1))
ACTOR = {"type": "api-token", "id": WORKSPACE}
MEMBERS: Mapping[str, str] = {"owner@own.example": str(UUID(int=0xABC))}  # ids of workspace members by address
NAME_PARTS = ("first_name", "last_name", "full_name")
LOCATION_PARTS = (
    *("line_1", "line_2", "line_3", "line_4", "locality", "region", "postcode", "country_code"),
    *("latitude", "longitude"),
)
EMAIL = re.compile(r"([^@\s]{1,64})@([a-z0-9-]+(?:\.[a-z0-9-]+)+)", re.ASCII)

_DOMAIN = re.compile(r"(?=.{3,253}$)[a-z0-9-]+(\.[a-z0-9-]+)+", re.ASCII)
_PHONE = re.compile(r"\+[1-9][0-9 ().-]{5,20}", re.ASCII)
_COUNTRIES = {"+44": "GB", "+49": "DE", "+33": "FR", "+1": "US"}


class AttioError(Exception):
    """A request that Attio rejects: status, code, message."""

    def __init__(self, status: int, code: str, message: str, path: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.path = status, code, message, path


def invalid(message: str, *path: str) -> AttioError:
    """Return the error about a body or value that Attio rejects."""
    return AttioError(400, "validation_type", message, path)


class AttioAttribute(NamedTuple):
    """An attribute of an object or a list."""

    slug: str
    type: str
    unique: bool = False
    many: bool = False
    required: bool = False
    options: tuple[str, ...] = ()

    def described(self, owner: str) -> dict[str, Any]:
        """Return it as the API describes it."""
        return {
            "id": self._id(owner),
            "title": self.slug.replace("_", " ").title(),
            "description": None,
            "api_slug": self.slug,
            "type": self.type,
            "is_system_attribute": False,
            "is_writable": True,
            "is_required": self.required,
            "is_unique": self.unique,
            "is_multiselect": self.many,
            "is_default_value_enabled": False,
            "is_archived": False,
            "default_value": None,
            "relationship": None,
            "created_at": "2020-01-01T00:00:00.000000000Z",
            "config": {
                "currency": {"default_currency_code": "USD", "display_type": "symbol"},
                "record_reference": {"allowed_object_ids": None},
            },
        }

    def option(self, owner: str, title: str) -> dict[str, Any]:
        """Return an option of a select, or a status, as the API describes it."""
        is_status = self.type == "status"
        ids = {**self._id(owner), "status_id" if is_status else "option_id": title}
        more = {"celebration_enabled": False, "target_time_in_status": None} if is_status else {}
        return {"id": ids, "title": title, "is_archived": False, **more}

    def stored(self, value: Any) -> Any:
        """Return a value in stored form; raises AttioError. References to records are not checked here."""
        if self.type in ("select", "status"):
            if value not in self.options:
                said = f'Cannot find option "{value}" for attribute with slug/ID "{self.slug}".'
                raise AttioError(400, "value_not_found", said, (self.slug,))
            return value
        made = _stored(self.type, value)
        if made is None:
            raise invalid(f'Invalid value was passed to attribute with slug "{self.slug}".', self.slug)
        return made

    def shown(self, owner: str, value: Any, since: str) -> dict[str, Any]:
        """Return a value in the form of a response, with its history."""
        history = {"active_from": since, "active_until": None, "created_by_actor": ACTOR}
        if self.type in ("select", "status"):
            name = "status" if self.type == "status" else "option"
            return {**history, name: self.option(owner, value), "attribute_type": self.type}
        return {**history, **_shown(self.type, value), "attribute_type": self.type}

    def _id(self, owner: str) -> dict[str, str]:
        return {"workspace_id": WORKSPACE, "object_id": owner, "attribute_id": self.slug}


def _stored(kind: str, value: Any) -> Any:
    """Return a value in Attio's stored form; None if it is invalid."""
    inner = next(iter(value.values()), None) if isinstance(value, dict) else value
    match kind:
        case "personal-name":
            return _name(value)
        case "location":
            is_whole = isinstance(value, dict) and set(value) == set(LOCATION_PARTS)
            return (
                dict(value) if is_whole and all(one is None or isinstance(one, str) for one in value.values()) else None
            )
        case "actor-reference":
            id_ = MEMBERS.get(str(inner)) or (value.get("referenced_actor_id") if isinstance(value, dict) else inner)
            known = {"referenced_actor_type": "workspace-member", "referenced_actor_id": id_}
            return known if id_ in MEMBERS.values() else None
        case "number" | "currency" | "rating":
            return inner if isinstance(inner, int | float) and not isinstance(inner, bool) else None
        case "checkbox":
            return inner if isinstance(inner, bool) else None
        case "email-address" | "domain":
            low = inner.strip().lower() if isinstance(inner, str) else ""
            return low if (EMAIL if kind == "email-address" else _DOMAIN).fullmatch(low) else None
        case "phone-number":
            return inner if isinstance(inner, str) and _PHONE.fullmatch(inner) else None
        case "date" | "timestamp":
            try:
                datetime.fromisoformat(str(inner))
            except ValueError:
                return None
            return str(inner)
    return inner if isinstance(inner, str) and "\x00" not in inner else None


def _name(value: Any) -> dict[str, str] | None:
    if isinstance(value, str):
        last, comma, first = value.partition(",")
        parts = (first.strip(), last.strip()) if comma else (value.strip(), "")
        return dict(zip(NAME_PARTS, (*parts, " ".join(parts).strip()), strict=True))
    if (
        isinstance(value, dict)
        and set(value) == set(NAME_PARTS)
        and all(isinstance(one, str) for one in value.values())
    ):
        return dict(value)
    return None


def _shown(kind: str, value: Any) -> dict[str, Any]:
    match kind:
        case "email-address":
            found = EMAIL.fullmatch(value)
            local, domain = (found[1], found[2]) if found else ("", "")
            root = ".".join(domain.split(".")[-2:])
            parts = {"email_domain": domain, "email_root_domain": root, "email_local_specifier": local}
            return {"original_email_address": value, "email_address": value, **parts}
        case "domain":
            return {"domain": value, "root_domain": ".".join(value.split(".")[-2:])}
        case "phone-number":
            country = next((code for start, code in _COUNTRIES.items() if value.startswith(start)), "US")
            digits = "+" + re.sub(r"\D", "", value)
            return {"original_phone_number": value, "phone_number": digits, "country_code": country}
        case "currency":
            return {"currency_value": value, "currency_code": "USD"}
    return dict(value) if isinstance(value, dict) else {"value": value}


@dataclass(slots=True)
class AttioRecord:
    """A record or a list entry."""

    id: str
    created_at: str
    values: dict[str, list[Any]] = field(default_factory=dict)
    parent: tuple[str, str] | None = None  # of a list entry
    auto: bool = False  # created by Attio automatically


@dataclass(slots=True)
class AttioCollection:
    """An object or a list with its records. `taken` finds records by their unique values."""

    slug: str
    slots: dict[str, AttioAttribute]
    held: dict[str, AttioRecord] = field(default_factory=dict)
    taken: dict[tuple[str, str], str] = field(default_factory=dict)
    by_parent: dict[tuple[str, str], list[str]] = field(default_factory=dict)


def _shelf(slug: str, text: str, **options: tuple[str, ...]) -> AttioCollection:
    """Parse attributes: `name:type`, with `*` for many, `^` for unique and `!` for required; also `affinity_id`."""
    found = {}
    for word in f"{text} affinity_id:text{'' if slug == 'pipeline' else '^'}".split():
        name, _, kind = word.rstrip("*^!").partition(":")
        flags = {"unique": "^" in word, "many": "*" in word, "required": "!" in word}
        found[name] = AttioAttribute(name, kind, **flags, options=options.get(name, ()))
    return AttioCollection(slug, found)


def standard_objects() -> dict[str, AttioCollection]:
    """Return Attio's standard objects, each with an attribute for the id in Affinity."""
    people = "name:personal-name email_addresses:email-address*^ phone_numbers:phone-number* company:record-reference "
    people += "job_title:text description:text primary_location:location"
    companies = "name:text domains:domain*^ description:text categories:select* primary_location:location"
    deals = "name:text! stage:status! owner:actor-reference! value:currency associated_company:record-reference "
    deals += "associated_people:record-reference*"
    return {
        "people": _shelf("people", people),
        "companies": _shelf("companies", companies, categories=("B2B", "SaaS", "Logistics")),
        "deals": _shelf("deals", deals, stage=("Lead", "In Progress", "Won", "Lost")),
    }


def standard_lists() -> dict[str, AttioCollection]:
    """Return the lists of a new workspace."""
    return {"pipeline": _shelf("pipeline", "stage:status", stage=("New", "Contacted", "Won", "Lost"))}
