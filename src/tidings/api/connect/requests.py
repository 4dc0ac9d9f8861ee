"""Translate Connect's requests into those of the native API. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ...inputs.fields import Field, check_fields
from ...model.errors import Invalid
from ...model.time import instant, iso

CONNECT_FIELDS: Mapping[str, Field] = {
    "transport": Field("string", "name of a configured channel", "phone", required=True),
    "message": Field("object", "content and meta, or templateId and meta", {"content": "Hello"}, required=True),
    "addresses": Field("array", "recipients", ["ada", "bob"], required=True),
    "trigger": Field("string", "IMMEDIATE, SCHEDULED or MANUAL", "IMMEDIATE", required=True),
    "maxAttempts": Field("integer", "maximum attempts, including the first", 3),
    "webhook": Field("string", "URL to notify when the session has ended", "https://example.org/done"),
    "options": Field("object", "scheduledTimestamp, attemptIntervalMinutes", {"attemptIntervalMinutes": "15"}),
    "xref": Field("string", "your own key, to group sessions", "project-7"),
}  # fmt: skip
_MESSAGE = ("content", "templateId", "meta")
_OPTIONS = ("scheduledTimestamp", "attemptIntervalMinutes")


def broadcast_request(body: object, now: int) -> dict[str, Any]:
    """The native request for a session. A scheduled time that has passed starts it at once, as in Connect."""
    given = check_fields(body, CONNECT_FIELDS)
    message, options = given["message"], given.get("options") or {}
    for name, fields, known in (("message", message, _MESSAGE), ("options", options, _OPTIONS)):
        if unknown := sorted(set(fields) - set(known)):
            field = f"{name}.{unknown[0][:60]}"
            raise Invalid(f"unknown field {field!r}", field=field, remedy=f"use {', '.join(known)}")
    meta = message.get("meta") or {}
    trigger, at = given["trigger"].strip().upper(), None
    if trigger == "SCHEDULED":
        due = _timestamp(options.get("scheduledTimestamp"))
        trigger, at = ("SCHEDULED", iso(due)) if due > now else ("IMMEDIATE", None)
    native = {
        "channel": given["transport"],
        "addresses": given["addresses"],
        "trigger": trigger,
        "at": at,
        "maxAttempts": given.get("maxAttempts"),
        "attemptIntervalMinutes": _minutes(options.get("attemptIntervalMinutes")),
        "webhook": given.get("webhook") or None,
        "xref": given.get("xref") or None,
    }
    if message.get("templateId") is not None:
        native |= {"template": message["templateId"], "variables": meta or None}
    else:
        rest = {name: value for name, value in meta.items() if name != "subject"}
        native |= {"text": message.get("content"), "subject": meta.get("subject"), "data": rest or None}
    return {name: value for name, value in native.items() if value is not None}


def _timestamp(value: object) -> int:
    field, remedy = "options.scheduledTimestamp", "write 2027-01-01T09:00:00Z"
    if value is None:
        raise Invalid("SCHEDULED needs a time", field=field, remedy=remedy)
    try:
        found = datetime.fromisoformat(str(value))
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        problem = "is not a time" if found is None else "has no time zone"
        raise Invalid(f"{str(value)[:60]!r} {problem}", field=field, remedy=remedy)
    return instant(found)


def _minutes(value: object) -> float | None:
    """The interval between attempts; of a list such as "15,60,240" the first."""
    if value in (None, ""):
        return None
    try:
        return float(str(value).partition(",")[0])
    except ValueError:
        raise Invalid(
            f"{str(value)[:60]!r} is not a number of minutes", field="options.attemptIntervalMinutes", remedy="write 5"
        ) from None
