"""Parse and check a broadcast request. Recipients are parsed by `recipient_parser`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from ...inputs.fields import Field, check_fields
from ...inputs.timezones import parse_timezone
from ...model.broadcast import BroadcastOptions, BroadcastTrigger, QuietHours
from ...model.errors import Invalid
from ...model.time import MINUTE, SECOND, iso
from ..draft_parser import TIME_FIELDS, DraftParser, refuses_past
from ..message_validation import MAX_SCHEDULE_AHEAD, check_line
from ..templates.depth_limit import check_depth

LONGEST_NAME = 200
LONGEST_SPREAD = 10.0  # seconds
MOST_TRIES = 1000
LONGEST_INTERVAL = 24 * 60  # minutes
UPLOAD = "upload"

BROADCAST_FIELDS: Mapping[str, Field] = {
    "channel": Field("string", "name of a configured channel", "phone", required=True),
    "name": Field("string", "display name", "Flood warning"),
    "addresses": Field("array", "recipients: addresses, or objects with address, zone and variables", ["ada", "bob"]),
    "list": Field("string", "contact list instead of addresses, by id or name", "volunteers"),
    "recipients": Field("string", '"upload": send them as CSV or NDJSON in a separate call', UPLOAD),
    "text": Field("string", "message text", "Hello"),
    "subject": Field("string", "subject line, for channels that support one"),
    "data": Field("object", "additional channel-specific fields"),
    "template": Field(
        "string", "template instead of text, by id or name; filled with the recipients' variables", "welcome"
    ),
    "template_version": Field("integer", "template version (default: the newest)", 1),
    "variables": Field("object", "template variables shared by all recipients", {"town": "Bonn"}),
    "trigger": Field("string", "IMMEDIATE, SCHEDULED (with `at` or `in`) or MANUAL", "IMMEDIATE"),
    **TIME_FIELDS,
    "maxAttempts": Field("integer", "maximum attempts, including the first", 6),
    "attemptIntervalMinutes": Field("number", "minutes between attempts, instead of the channel's retry policy", 5),
    "webhook": Field("string", "URL to notify when the broadcast has ended", "https://example.org/done"),
    "xref": Field("string", "your own key, to group broadcasts", "project-7"),
    "per_second": Field("number", "maximum first attempts per second", 50),
    "spread": Field("number", "spread starts over this many seconds, 0 to 10", 5),
    "error_limit": Field("number", "stop if more than this percentage has failed, once 20 have ended", 10),
    "canary": Field("integer", "send to this many first, then pause until resumed", 100),
    "quiet_hours": Field("object", "quiet hours on the recipient's clock", {"from": "22:00", "to": "07:00"}),
    "timezone": Field("string", "time zone for `at` and for recipients without one", "Europe/Berlin"),
    "recipient_timezone": Field("boolean", "send at the same local time in each recipient's time zone", False),
    "priority": Field("integer", "0 (first) to 9 (last)", 5),
    "skip_bad": Field("boolean", "skip invalid rows and report them; otherwise one refuses the upload", False),
}
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")


class BroadcastRequest(NamedTuple):
    """A parsed broadcast request."""

    channel: str
    name: str
    xref: str | None
    starts: BroadcastTrigger
    scheduled_at: int | None
    content: dict[str, Any] | None  # None: a template's
    template: str | None
    template_version: int | None
    retry_in: int | None
    options: BroadcastOptions
    addresses: list[Any] | None
    list: str | None
    refuses_past: bool

    @property
    def is_upload(self) -> bool:
        """Whether the recipients are uploaded in a separate call."""
        return self.addresses is None and self.list is None


def parse_broadcast(body: object, *, now: int, timezone: ZoneInfo) -> BroadcastRequest:
    """Parse a request body; raises Invalid."""
    given = check_fields(body, BROADCAST_FIELDS)
    place = timezone if given.get("timezone") is None else parse_timezone(given["timezone"])
    starts, at = _start(given, DraftParser(now=now, timezone=place), now)
    content = _content(given)
    _one_source(given)
    interval = _within(given, "attemptIntervalMinutes", 1 / 60, LONGEST_INTERVAL)
    return BroadcastRequest(
        given["channel"],
        _name(given),
        _line(given, "xref", 255),
        starts,
        at,
        content,
        given.get("template"),
        given.get("template_version"),
        None if interval is None else round(interval * MINUTE),
        _options(given, place),
        given.get("addresses"),
        given.get("list"),
        refuses_past(given),
    )


def parse_rate(given: Mapping[str, Any], options: BroadcastOptions) -> BroadcastOptions:
    """The options with another rate; null removes the limit."""
    return replace(options, per_second=_within(given, "per_second", 0.001, 100_000))


def _options(given: Mapping[str, Any], timezone: ZoneInfo) -> BroadcastOptions:
    limit = _within(given, "error_limit", 0, 100)
    spread = _within(given, "spread", 0, LONGEST_SPREAD)
    canary = _within(given, "canary", 1, 1_000_000)
    attempts = _within(given, "maxAttempts", 1, MOST_TRIES)
    priority = _within(given, "priority", 0, 9)
    return BroadcastOptions(
        per_second=_within(given, "per_second", 0.001, 100_000),
        spread=0 if spread is None else round(spread * SECOND),
        error_limit=None if limit is None else limit / 100,
        canary=None if canary is None else int(canary),
        quiet_hours=_quiet_hours(given.get("quiet_hours")),
        timezone=timezone.key,
        recipient_timezone=bool(given.get("recipient_timezone")),
        max_attempts=None if attempts is None else int(attempts),
        priority=5 if priority is None else int(priority),
        webhook=given.get("webhook"),
        skip_bad=bool(given.get("skip_bad")),
        variables=given.get("variables"),
    )


def _start(given: Mapping[str, Any], reading: DraftParser, now: int) -> tuple[BroadcastTrigger, int | None]:
    at = reading.when(given)
    if at is not None and at > now + MAX_SCHEDULE_AHEAD:
        raise Invalid(f"{iso(at)} is more than ten years ahead", field="at", remedy="give an earlier time")
    word = given.get("trigger")
    if word is None:
        return (BroadcastTrigger.IMMEDIATE, None) if at is None else (BroadcastTrigger.SCHEDULED, at)
    try:
        starts = BroadcastTrigger(word.strip().lower())
    except ValueError:
        known = ", ".join(start.upper() for start in BroadcastTrigger)
        raise Invalid(f"there is no trigger {word[:60]!r}", field="trigger", remedy=f"use {known}") from None
    if starts is BroadcastTrigger.SCHEDULED and at is None:
        raise Invalid("SCHEDULED needs a time", field="at", remedy="give `at` or `in`")
    if starts is not BroadcastTrigger.SCHEDULED and at is not None:
        raise Invalid(f"{starts.upper()} takes no time", field="at", remedy="leave it out, or use SCHEDULED")
    return starts, at


def _content(given: Mapping[str, Any]) -> dict[str, Any] | None:
    """The inline content; None if a template is given."""
    own = {name: given[name] for name in ("text", "subject", "data") if given.get(name) is not None}
    if given.get("template") is not None:
        if own:
            raise Invalid("both a template and content are given", field="template", remedy="give one of them")
        return None
    for name in ("template_version", "variables"):
        if given.get(name) is not None:
            raise Invalid(f"{name} is given without a template", field=name, remedy="name the template too")
    if not own.get("text") and not own.get("data"):
        raise Invalid("the message is empty", field="text", remedy="give a text, data or a template")
    if "data" in own:
        check_depth(own["data"])
    return {"text": "", **own}


def _one_source(given: Mapping[str, Any]) -> None:
    named = [name for name in ("addresses", "list", "recipients") if given.get(name) is not None]
    remedy = 'give `addresses`, or a `list`, or "recipients": "upload"'
    if len(named) != 1:
        problem = f"{' and '.join(named)} are both given" if named else "the recipients are missing"
        raise Invalid(problem, field=named[0] if named else "addresses", remedy=remedy)
    if given.get("recipients") not in (None, UPLOAD):
        raise Invalid(f"recipients is {given['recipients'][:60]!r}", field="recipients", remedy=remedy)
    if given.get("addresses") == []:
        raise Invalid("the list of addresses is empty", field="addresses", remedy="give at least one")


def _quiet_hours(given: Mapping[str, Any] | None) -> QuietHours | None:
    if given is None:
        return None
    remedy = 'for example {"from": "22:00", "to": "07:00"}'
    found = [_CLOCK.fullmatch(str(given.get(name, ""))) for name in ("from", "to")]
    if set(given) != {"from", "to"} or None in found:
        raise Invalid("quiet_hours must have two times of day", field="quiet_hours", remedy=remedy)
    begin, end = (int(clock[1]) * 60 + int(clock[2]) for clock in found if clock is not None)
    if begin == end:
        raise Invalid("quiet hours would never end", field="quiet_hours", remedy=remedy)
    return QuietHours(begin, end)


def _name(given: Mapping[str, Any]) -> str:
    """The given name, or the first words of the content."""
    name = _line(given, "name", LONGEST_NAME)
    if name is not None:
        return name
    text = str(given.get("text") or given.get("subject") or given.get("template") or "broadcast")
    words = " ".join("".join(c if c.isprintable() else " " for c in text[:300]).split())
    return words if len(words) <= 60 else f"{words[:59]}…"


def _line(given: Mapping[str, Any], name: str, longest: int) -> str | None:
    text: str | None = given.get(name)
    return None if text is None else check_line(text, name, longest)


def _within(given: Mapping[str, Any], name: str, low: float, high: float) -> float | None:
    value: float | None = given.get(name)
    if value is not None and not low <= value <= high:
        raise Invalid(f"{name} is {value:g}", field=name, remedy=f"use {low:g} to {high:,g}")
    return value
