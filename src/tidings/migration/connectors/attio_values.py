"""Conversion of Attio's values and errors. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .api_client import ApiRefusal
from .port import Attribute, ConnectorError, ErrorKind, Fields

# Attio's attribute type -> ours
TYPES: Mapping[str, str] = {
    "text": "text",
    "personal-name": "text",
    "number": "number",
    "rating": "number",
    "currency": "number",
    "checkbox": "boolean",
    "date": "date",
    "timestamp": "time",
    "email-address": "email",
    "phone-number": "phone",
    "domain": "text",
    "select": "select",
    "status": "select",
    "record-reference": "reference",
    "actor-reference": "reference",
    "location": "json",
    "interaction": "json",
}

# The key of the value itself in a response.
_VALUE: Mapping[str, str] = {
    "email-address": "email_address",
    "phone-number": "original_phone_number",
    "domain": "domain",
    "currency": "currency_value",
    "record-reference": "target_record_id",
}
_KEPT: Mapping[str, Sequence[str]] = {
    "personal-name": ("first_name", "last_name", "full_name"),
    "actor-reference": ("referenced_actor_type", "referenced_actor_id"),
    "location": (
        *("line_1", "line_2", "line_3", "line_4", "locality", "region", "postcode", "country_code"),
        *("latitude", "longitude"),
    ),
}
_NAMED = re.compile(r'attribute[^"]{0,60}"([\w-]{1,100})"')
_NOW_AND_THEN = frozenset({"concurrent_write_conflict", "merge_in_progress"})


def attribute_of(one: Mapping[str, Any], options: Sequence[str] = ()) -> Attribute:
    """Convert an attribute description."""
    return Attribute(
        str(one.get("api_slug")),
        TYPES.get(str(one.get("type")), "json"),
        required=one.get("is_required") is True,
        unique=one.get("is_unique") is True,
        many=one.get("is_multiselect") is True,
        options=options,
    )


def plain(values: Any, attributes: Mapping[str, Attribute]) -> Fields:
    """Convert values as read into the form in which they are written: active ones, single or as a list."""
    found: dict[str, Any] = {}
    for name, held in values.items() if isinstance(values, dict) else ():
        active = [_plain(one) for one in held if isinstance(one, dict) and not one.get("active_until")]
        known = attributes.get(name)
        if known is not None and known.many:
            found[name] = active
        elif active:
            found[name] = active[0]
    return found


def _plain(one: Mapping[str, Any]) -> Any:
    kind = str(one.get("attribute_type"))
    if kind in _KEPT:
        return {name: one.get(name) for name in _KEPT[kind]}
    if kind in ("select", "status"):
        chosen = one.get("option" if kind == "select" else "status")
        return chosen.get("title") if isinstance(chosen, dict) else chosen
    return one.get(_VALUE.get(kind, "value"))


def canonical_value(kind: str, value: Any) -> Any:
    """Return a value as Attio returns it: names and locations with all parts, addresses in lowercase."""
    if isinstance(value, list | tuple):
        return [canonical_value(kind, one) for one in value]
    match kind:
        case "personal-name" if isinstance(value, str | Mapping):
            return _name(value)
        case "location" if isinstance(value, str | Mapping):
            given = {"line_1": value} if isinstance(value, str) else value
            return {name: None if given.get(name) is None else str(given[name]) for name in _KEPT[kind]}
        case "email-address" | "domain" if isinstance(value, str):
            return value.strip().lower()
        case "currency" if isinstance(value, Mapping):
            return value.get("currency_value")
    return value


def _name(value: str | Mapping[str, Any]) -> dict[str, str]:
    """Return a name with all its parts; in a text without a comma, the last word is the last name."""
    if isinstance(value, str):
        last, comma, first = value.partition(",")
        if not comma:
            first, _, last = value.strip().rpartition(" ")
            first, last = (first, last) if first else (last, "")
        value = {"first_name": first.strip(), "last_name": last.strip(), "full_name": None if comma else value.strip()}
    first, last = (str(value.get(name) or "") for name in ("first_name", "last_name"))
    full = value.get("full_name") or f"{first} {last}".strip()
    return {"first_name": first, "last_name": last, "full_name": str(full)}


def linked(value: Any, object_: str) -> Any:
    """Convert an id, or several, into references to records of an object."""
    if isinstance(value, list | tuple):
        return [linked(one, object_) for one in value]
    return {"target_object": object_, "target_record_id": value} if isinstance(value, str) else value


def first_text(value: Any) -> str | None:
    """Return the text by which a record is found: of one value, or the first of several."""
    if isinstance(value, list | tuple):
        value = value[0] if value else None
    if isinstance(value, Mapping):
        value = next((value[name] for name in ("domain", "email_address", "value") if name in value), None)
    return None if value is None or isinstance(value, Mapping | bool) else str(value)


def explain(refusal: ApiRefusal) -> ConnectorError:
    body = refusal.body if isinstance(refusal.body, dict) else {}
    code, message = body.get("code"), body.get("message")
    failure: ErrorKind | None = None
    if code in _NOW_AND_THEN:
        failure = ErrorKind.TEMPORARY
    elif code == "quota_exceeded":
        failure = ErrorKind.QUOTA
    elif refusal.status == 409:
        failure = ErrorKind.VALIDATION
    return refusal.to_error(failure, said=message, field=_field(body), code=code)


def _field(body: Mapping[str, Any]) -> str | None:
    """Return the attribute that an error is about, by its path or by its message."""
    errors = body.get("validation_errors")
    path = errors[0].get("path") if isinstance(errors, list) and errors and isinstance(errors[0], dict) else None
    steps = [one for one in path if isinstance(one, str)] if isinstance(path, list) else []
    named = next((one for one in reversed(steps) if one not in ("data", "values", "entry_values")), None)
    found = _NAMED.search(str(body.get("message") or ""))
    return named or (found[1] if found else None)
