"""Parse and check a schedule request; times are read in the schedule's time zone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import orjson

from ...inputs.fields import Field
from ...inputs.natural_times import parse_in, parse_when
from ...inputs.timezones import parse_timezone, resolve_wall_time
from ...model.errors import Invalid
from ...model.time import SECOND, iso, micros
from ...store.port import Row
from ..message_validation import check_line
from . import catch_up
from .catch_up import series_of
from .recurrence import RULE_KINDS, RecurrenceSeries
from .rule_descriptions import describe_rule
from .rule_parser import parse_rule, serialize_rule

DEFAULT_CATCH_UP_WINDOW = timedelta(hours=1)  # older missed occurrences are not made
MAX_CATCH_UP_WINDOW = timedelta(days=31)
MAX_COUNT = 1_000_000
MAX_PREVIEWED = 366  # firings of one preview
MAX_TAGS = 20
OVERLAP_POLICIES = ("allow", "skip", "wait")
_MAX_NAME_LENGTH = 200
_TAG = re.compile(r"[\w.:/-]{1,63}")

_EXAMPLE = {"channel": "phone", "to": "ada", "text": "Hello"}
TIMING_FIELDS: Mapping[str, Field] = {
    "rule": Field("object", f"when: one of {', '.join(RULE_KINDS)}", {"cron": "0 9 * * 1-5"}, required=True),
    "timezone": Field("string", "time zone of the rule (default: the setting `timezone`)", "Europe/Berlin"),
    "start": Field("string", "first possible time", "2026-12-01"),
    "end": Field("string", "last possible time", "2027-03-31"),
    "count": Field("integer", "end after this many occurrences", 10),
    "excluded_dates": Field("array", "excluded dates", ["2026-12-25"]),
}  # fmt: skip
SCHEDULE_FIELDS: Mapping[str, Field] = {
    "name": Field("string", "display name", "Morning round"),
    **TIMING_FIELDS,
    "catch_up": Field("string", "catch-up policy for missed occurrences: skip, latest or all", "latest"),
    "catch_up_window": Field("string", "how late a missed occurrence may still be made", "1h"),
    "overlap": Field("string", "if the previous occurrence is not finished: allow, skip or wait", "allow"),
    "tags": Field("array", "labels to filter by", ["reminders"]),
    "message": Field("object", "the message to create: message fields without a time", _EXAMPLE),
    "broadcast": Field("object", "the broadcast to create: broadcast fields without a trigger"),
}  # fmt: skip
SCHEDULE_CHANGES: Mapping[str, Field] = {
    name: field._replace(required=False) for name, field in SCHEDULE_FIELDS.items()
}
PREVIEW_FIELDS: Mapping[str, Field] = {
    **TIMING_FIELDS,
    "n": Field("integer", f"how many to show, 1 to {MAX_PREVIEWED}", 10),
}


class ScheduleRequest(NamedTuple):
    """A checked schedule request: the columns of its row."""

    name: str
    rule: str
    timezone: str
    creates: str
    body: str
    catch_up: str
    catch_up_window: int
    overlap: str
    tags: str
    channel: str | None
    recipient: str | None
    start_at: int | None
    end_at: int | None
    most: int | None

    @property
    def series(self) -> RecurrenceSeries:
        """The series of its instants."""
        return series_of(self._asdict())


def parse_schedule(given: Mapping[str, Any], usual: ZoneInfo, now: int, before: Row | None = None) -> ScheduleRequest:
    """Parse the fields of a request; `before` is the row that is being edited."""
    rule, timezone, start, end, most = parse_timing(given, usual, now, before)
    creates, body = _content(given)
    return ScheduleRequest(
        _name(given.get("name"), rule), rule, timezone.key, creates, body,
        _choice(given, "catch_up", catch_up.CATCH_UP_POLICIES, catch_up.LATEST), _grace(given, before),
        _choice(given, "overlap", OVERLAP_POLICIES, OVERLAP_POLICIES[0]), _tags(given.get("tags")),
        _text(given[creates].get("channel")), _text(given[creates].get("to")), start, end, most,
    )  # fmt: skip


def parse_timing(
    given: Mapping[str, Any], usual: ZoneInfo, now: int, before: Row | None = None
) -> tuple[str, ZoneInfo, int | None, int | None, int | None]:
    """Parse rule, time zone, start, end and count."""
    if given.get("rule") is None:
        raise Invalid("rule is missing", field="rule", remedy='for example {"cron": "0 9 * * 1-5"}')
    timezone = usual if given.get("timezone") is None else parse_timezone(given["timezone"])
    start = _bound(given, "start", timezone, now, before)
    end = _bound(given, "end", timezone, now, before)
    if start is not None and end is not None and end < start:
        raise Invalid(f"the end {iso(end)} is before the start {iso(start)}", field="end", remedy="give a later end")
    anchor = _anchor(given, start, before, now)
    rule = parse_rule(given["rule"], anchor=anchor, excluded=given.get("excluded_dates"))
    most = given.get("count")
    if most is not None and not 1 <= most <= MAX_COUNT:
        raise Invalid(f"count is {most}", field="count", remedy=f"use 1 to {MAX_COUNT:,}, or leave it out")
    return rule, timezone, start, end, most


def _anchor(given: Mapping[str, Any], start: int | None, before: Row | None, now: int) -> int:
    """The anchor of an interval: its start, the previous anchor of an unchanged rule, or now."""
    if start is not None:
        return start
    if before is not None and before["start_at"] is None and given["rule"] == serialize_rule(before["rule"]):
        return int(orjson.loads(before["rule"]).get("anchor", now))
    return now // SECOND * SECOND


def _bound(given: Mapping[str, Any], name: str, timezone: ZoneInfo, now: int, before: Row | None) -> int | None:
    """Parse a date or time in the schedule's time zone unless it names another; an end includes its day."""
    if name not in given and before is not None:
        kept: int | None = before[f"{name}_at"]
        return kept
    text = given.get(name)
    if text is None:
        return None
    try:
        if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
            day = date.fromisoformat(text) + timedelta(days=name == "end")
            return resolve_wall_time(datetime.combine(day, time()), timezone).at - (name == "end")
        if re.fullmatch(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?", text):
            return resolve_wall_time(datetime.fromisoformat(text), timezone).at
    except (ValueError, OverflowError):
        raise Invalid(f"{text!r} is not a valid date or time", field=name, remedy="write 2026-12-01") from None
    return parse_when(text, now=now, timezone=timezone, field=name)


def first_instant(wanted: ScheduleRequest, after: int) -> int:
    """The first instant after another; raises Invalid if the schedule would never fire."""
    following = wanted.series.first_after(after)
    if following is None:
        if wanted.end_at is not None and wanted.end_at <= after:
            raise never_fires(f"its end {iso(wanted.end_at)} is past", "end", "give an end in the future")
        if wanted.end_at is not None:
            raise never_fires(f"its rule has no time before its end at {iso(wanted.end_at)}", "end", "give a later end")
        raise never_fires("its rule has no future time", "rule", "check the days, COUNT and UNTIL")
    return following.at


def never_fires(why: str, field: str, remedy: str) -> Invalid:
    """The error for a schedule without future occurrences."""
    return Invalid(f"the schedule would never fire: {why}", field=field, remedy=remedy)


def _content(given: Mapping[str, Any]) -> tuple[str, str]:
    kinds = [name for name in ("message", "broadcast") if given.get(name) is not None]
    if len(kinds) != 1:
        problem = "both message and broadcast are given" if kinds else "message or broadcast is missing"
        raise Invalid(problem, field="message", remedy="give either `message` or `broadcast`")
    return kinds[0], orjson.dumps(given[kinds[0]]).decode()


def _name(said: str | None, rule: str) -> str:
    name = describe_rule(rule)[:_MAX_NAME_LENGTH] if said is None else said.strip()
    return check_line(name, "name", _MAX_NAME_LENGTH)


def _choice(given: Mapping[str, Any], name: str, known: Sequence[str], default: str) -> str:
    said: str | None = given.get(name)
    if said is not None and said not in known:
        raise Invalid(f"{name} is {said[:40]!r}", field=name, remedy=f"use {', '.join(known)}")
    return said or default


def _tags(said: list[Any] | None) -> str:
    """The stored tags: |a|b|."""
    tags = list(dict.fromkeys(said or ()))
    if len(tags) > MAX_TAGS or not all(isinstance(tag, str) and _TAG.fullmatch(tag) for tag in tags):
        remedy = f"use at most {MAX_TAGS} tags of up to 63 letters, digits, and . _ : / -"
        raise Invalid("a tag is invalid, or there are too many", field="tags", remedy=remedy)
    return "".join(f"|{tag}" for tag in tags) + "|"


def tags_of(stored: str) -> list[str]:
    """The tags of a schedule."""
    return [tag for tag in stored.split("|") if tag]


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _grace(given: Mapping[str, Any], before: Row | None) -> int:
    if "catch_up_window" not in given and before is not None:
        return int(before["catch_up_window"])
    said = given.get("catch_up_window")
    length = DEFAULT_CATCH_UP_WINDOW if said is None else parse_in(said, field="catch_up_window")
    if not timedelta(seconds=1) <= length <= MAX_CATCH_UP_WINDOW:
        raise Invalid(f"catch_up_window is {said!r}", field="catch_up_window", remedy="use 1s to 31d")
    return micros(length)


def to_request(row: Row) -> dict[str, Any]:
    """The row as request fields, without times and durations, which stay as stored."""
    return {
        "name": row["name"],
        "rule": serialize_rule(row["rule"]),
        "timezone": row["timezone"],
        "count": row["most"],
        "excluded_dates": orjson.loads(row["rule"]).get("excluded_dates"),
        "catch_up": row["catch_up"],
        "overlap": row["overlap"],
        "tags": tags_of(row["tags"]),
        row["creates"]: orjson.loads(row["body"]),
    }


def timing_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """The columns that determine its instants; if they are unchanged, so is the next run."""
    return tuple(row[name] for name in ("rule", "timezone", "start_at", "end_at"))
