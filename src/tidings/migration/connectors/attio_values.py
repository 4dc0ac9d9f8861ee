"""Conversion of Attio's values and errors. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
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
    "location": ("line_1", "line_2", "line_3", "line_4", "locality", "region", "postcode", "country_code"),
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
        return {name: one[name] for name in _KEPT[kind] if one.get(name) is not None}
    if kind in ("select", "status"):
        chosen = one.get("option" if kind == "select" else "status")
        return chosen.get("title") if isinstance(chosen, dict) else chosen
    return one.get(_VALUE.get(kind, "value"))


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


def same_note(held: Mapping[str, Any], wanted: Fields) -> bool:
    """Return whether a note in Attio is the wanted one: title, text and, if given, its time."""
    markdown = wanted.get("format") == "markdown"
    text = held.get("content_markdown" if markdown else "content_plaintext")
    if _squeezed(text) != _squeezed(wanted.get("content")):
        return False
    if _squeezed(held.get("title")) != _squeezed(wanted.get("title")):
        return False
    if wanted.get("created_at") is None:
        return True
    return instant_of(held.get("created_at")) == instant_of(wanted["created_at"])


def instant_of(value: object) -> datetime | None:
    """Parse a time to milliseconds, the precision that Attio keeps."""
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    if found is None:
        return None
    found = found.replace(tzinfo=found.tzinfo or UTC).astimezone(UTC)
    return found.replace(microsecond=found.microsecond // 1000 * 1000)


def _squeezed(value: object) -> str:
    return " ".join(str(value or "").split())


def explain(refusal: ApiRefusal) -> ConnectorError:
    """Map Attio's error to ours."""
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
