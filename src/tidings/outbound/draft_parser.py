"""Parse a message request into a draft: field names, types and times. `accept` validates the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from zoneinfo import ZoneInfo

import orjson

from ..inputs.fields import Field, check_fields
from ..inputs.natural_times import parse_in, parse_when
from ..model.errors import Invalid
from ..model.message import Draft
from ..model.time import micros
from .message_validation import check_not_past
from .templates.depth_limit import check_depth

_REMEMBERED = 1000

TIME_FIELDS: Mapping[str, Field] = {
    "at": Field("string", "send time: ISO 8601 with offset, or words", "tomorrow 9am"),
    "in": Field("string", "delay from now, instead of `at`", "10 min"),
    "past": Field("string", "if `at` is more than 5 minutes ago: `refuse` (default) or `send` at once", "send"),
}
MESSAGE_FIELDS: Mapping[str, Field] = {
    "channel": Field("string", "name of a configured channel", "phone", required=True),
    "to": Field("string", "recipient, in the channel's address format", "ada", required=True),
    "text": Field("string", "message text", "Hello"),
    "subject": Field("string", "subject line, for channels that support one"),
    "data": Field("object", "additional channel-specific fields"),
    "template": Field("string", "name or id of a template, instead of text, subject and data", "welcome"),
    "template_version": Field("integer", "template version (default: the newest)", 1),
    "variables": Field("object", "template variables", {"name": "Ada"}),
    **TIME_FIELDS,
    "priority": Field("integer", "0 (first) to 9 (last)", 5),
    "ordering_key": Field(
        "string", "messages with the same ordering key are sent one at a time, in order", "customer-7"
    ),
    "expires_at": Field("string", "expiry time: ISO 8601 with offset, or words", "tomorrow 6pm"),
    "expires_in": Field("string", "how long after its due time it may still be sent", "2h"),
    "max_attempts": Field("integer", "maximum attempts, including the first", 6),
}


class DraftParser:
    """Parses requests relative to one instant and time zone, so equal words mean equal times in a call."""

    def __init__(self, *, now: int, timezone: ZoneInfo, tenant: str = "default") -> None:
        self.now = now
        self._zone = timezone
        self._tenant = tenant
        self._known: dict[tuple[str, str], int] = {}

    def draft(self, body: object, *, keep: bool = False) -> Draft:
        """Parse a draft; `keep` stores the original request in it, to recognize a repeated call."""
        given = check_fields(body, MESSAGE_FIELDS)
        data = given.get("data")
        if data is not None:
            check_depth(data)
        at = self.when(given)
        draft = Draft(
            channel=given["channel"],
            to=given["to"],
            text=given.get("text") or "",
            subject=given.get("subject"),
            data=data,
            at=at,
            priority=5 if given.get("priority") is None else given["priority"],
            ordering_key=given.get("ordering_key"),
            expires_at=self._expiry(given, self.now if at is None else max(at, self.now)),
            max_attempts=given.get("max_attempts"),
            tenant=self._tenant,
            refuses_past=refuses_past(given),
            said=orjson.dumps(given, option=orjson.OPT_SORT_KEYS).decode() if keep else None,
        )
        if "template" in given or "variables" in given or "template_version" in given:
            return _of_template(draft, given)
        return draft

    def when(self, given: Mapping[str, Any]) -> int | None:
        """The instant that `at` or `in` names; None when neither is given."""
        at, length = given.get("at"), given.get("in")
        if at is None:
            return None if length is None else self.now + self._length(length, "in")
        if length is not None:
            raise Invalid("both `at` and `in` are given", field="at", remedy="give one of them")
        return self._instant(at, "at")

    def due(self, given: Mapping[str, Any]) -> int | None:
        """As `when`; raises Invalid for a time in the past unless the request allows it."""
        at = self.when(given)
        if at is not None and refuses_past(given):
            check_not_past(at, self.now)
        return at

    def _expiry(self, given: Mapping[str, Any], due: int) -> int | None:
        at, length = given.get("expires_at"), given.get("expires_in")
        if at is None:
            return None if length is None else due + self._length(length, "expires_in")
        if length is not None:
            raise Invalid("both `expires_at` and `expires_in` are given", field="expires_at", remedy="give one of them")
        return self._instant(at, "expires_at")

    def _instant(self, text: str, field: str) -> int:
        return self._read((field, text), lambda: parse_when(text, now=self.now, timezone=self._zone, field=field))

    def _length(self, text: str, field: str) -> int:
        return self._read((field, text), lambda: micros(parse_in(text, field=field)))

    def _read(self, words: tuple[str, str], read: Callable[[], int]) -> int:
        """Cache parsed times: parsing is slow and the lines of one call often repeat them."""
        known = self._known.get(words)
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            known = self._known[words] = read()
        return known


def refuses_past(given: Mapping[str, Any]) -> bool:
    """Return whether a time in the past is an error; `"past": "send"` allows it."""
    word = given.get("past")
    if word not in (None, "refuse", "send"):
        raise Invalid(f"past is {word[:60]!r}", field="past", remedy="use send or refuse")
    return word != "send"


def _of_template(draft: Draft, given: Mapping[str, Any]) -> Draft:
    """Add the template to a draft; rejects its fields without one, and content beside one."""
    if given.get("template") is None:
        for name in ("variables", "template_version"):
            if given.get(name) is not None:
                raise Invalid(f"{name} is given without a template", field=name, remedy="name the template")
        return draft
    for name in ("text", "subject", "data"):
        if given.get(name) is not None:
            raise Invalid(f"both `template` and `{name}` are given", field=name, remedy="give one of them")
    check_depth(given.get("variables"), "variables")
    return draft._replace(
        template=given["template"], template_version=given.get("template_version"), variables=given.get("variables")
    )
