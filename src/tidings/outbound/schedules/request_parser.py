"""Schedules from what a caller wrote: fields are checked, times are read in the schedule's own zone."""

from __future__ import annotations

import re
from collections.abc import Mapping
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
from . import catch_up
from .recurrence import RULE_KINDS, RecurrenceSeries
from .rule_descriptions import describe_rule
from .rule_parser import parse_rule, serialize_rule
from .schedule_state import series_of

DEFAULT_CATCH_UP_WINDOW = timedelta(hours=1)  # a missed occurrence older than this is not made up for
MAX_CATCH_UP_WINDOW = timedelta(days=31)
MAX_COUNT = 1_000_000
MAX_PREVIEWED = 366  # firings of one preview
_LONGEST_NAME = 200

_EXAMPLE = {"channel": "phone", "to": "ada", "text": "Hello"}
TIMING_FIELDS: Mapping[str, Field] = {
    "rule": Field("object", f"when: one of {', '.join(RULE_KINDS)}", {"cron": "0 9 * * 1-5"}, required=True),
    "timezone": Field("string", "time zone of the rule; the setting `zone`, if not given", "Europe/Berlin"),
    "start": Field("string", "not before this", "2026-12-01"),
    "end": Field("string", "not after this", "2027-03-31"),
    "count": Field("integer", "how many to make, then it ends", 10),
    "skip": Field("array", "days on which nothing is made", ["2026-12-25"]),
}  # fmt: skip
SCHEDULE_FIELDS: Mapping[str, Field] = {
    "name": Field("string", "what people call it", "Morning round"),
    **TIMING_FIELDS,
    "catch_up": Field("string", "what to do about missed ones: skip, latest or all", "latest"),
    "catch_up_window": Field("string", "how late one may still be made up for", "1h"),
    "message": Field("object", "what it makes: the fields of a message, without a time", _EXAMPLE),
    "broadcast": Field("object", "what it makes: the fields of a broadcast, without a trigger"),
}  # fmt: skip
SCHEDULE_CHANGES: Mapping[str, Field] = {
    name: field._replace(required=False) for name, field in SCHEDULE_FIELDS.items()
}
PREVIEW_FIELDS: Mapping[str, Field] = {
    **TIMING_FIELDS,
    "n": Field("integer", f"how many to show, 1 to {MAX_PREVIEWED}", 10),
}


class ScheduleRequest(NamedTuple):
    """A schedule as somebody wants it, checked; the columns of its row."""

    name: str
    rule: str
    timezone: str
    makes: str
    body: str
    catch_up: str
    catch_up_window: int
    start_at: int | None
    end_at: int | None
    most: int | None

    @property
    def series(self) -> RecurrenceSeries:
        """Its instants."""
        return series_of(self._asdict())


def parse_schedule(
    given: Mapping[str, Any], usual: ZoneInfo, now: int, before: Row | None = None
) -> ScheduleRequest:
    """The columns of a row, from fields of a request; `before` is the row that is being changed."""
    rule, timezone, start, end, most = parse_timing(given, usual, now, before)
    makes, body = _made(given)
    return ScheduleRequest(
        _name(given.get("name"), rule), rule, timezone.key, makes, body, _policy(given.get("catch_up")),
        _grace(given, before), start, end, most,
    )  # fmt: skip


def parse_timing(
    given: Mapping[str, Any], usual: ZoneInfo, now: int, before: Row | None = None
) -> tuple[str, ZoneInfo, int | None, int | None, int | None]:
    """Rule, zone, start, end and count, each checked."""
    if given.get("rule") is None:
        raise Invalid("rule is missing", field="rule", remedy='for example {"cron": "0 9 * * 1-5"}')
    timezone = usual if given.get("timezone") is None else parse_timezone(given["timezone"])
    start = _bound(given, "start", timezone, now, before)
    end = _bound(given, "end", timezone, now, before)
    if start is not None and end is not None and end < start:
        raise Invalid(
            f"it ends at {iso(end)}, before it starts at {iso(start)}", field="end", remedy="give a later end"
        )
    anchor = _anchor(given, start, before, now)
    rule = parse_rule(given["rule"], anchor=anchor, skip=given.get("skip"))
    most = given.get("count")
    if most is not None and not 1 <= most <= MAX_COUNT:
        raise Invalid(f"count is {most}", field="count", remedy=f"use 1 to {MAX_COUNT:,}, or leave it out")
    return rule, timezone, start, end, most


def _anchor(given: Mapping[str, Any], start: int | None, before: Row | None, now: int) -> int:
    """What an interval counts from: its start; else, for a rule that stays, as so far; else now."""
    if start is not None:
        return start
    if before is not None and before["start_at"] is None and given["rule"] == serialize_rule(before["rule"]):
        return int(orjson.loads(before["rule"]).get("anchor", now))
    return now // SECOND * SECOND


def _bound(
    given: Mapping[str, Any], name: str, timezone: ZoneInfo, now: int, before: Row | None
) -> int | None:
    """A day, or a time, in the schedule's own zone unless it says another; an end includes its day."""
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
        raise Invalid(
            f"{text!r} is not a possible day or time", field=name, remedy="write 2026-12-01"
        ) from None
    return parse_when(text, now=now, timezone=timezone, field=name)


def first_instant(wanted: ScheduleRequest, after: int) -> int:
    """The first instant after another; a schedule that would never fire is refused."""
    following = wanted.series.first_after(after)
    if following is None:
        if wanted.end_at is not None and wanted.end_at <= after:
            raise never_fires(f"it ended at {iso(wanted.end_at)}", "end", "give an end in the future")
        if wanted.end_at is not None:
            raise never_fires(
                f"no instant lies before its end at {iso(wanted.end_at)}", "end", "give a later end"
            )
        raise never_fires("no instant of its rule lies ahead", "rule", "check the days, COUNT and UNTIL")
    return following.at


def never_fires(why: str, field: str, remedy: str) -> Invalid:
    """What is said of a schedule without a future."""
    return Invalid(f"it would never fire: {why}", field=field, remedy=remedy)


def _made(given: Mapping[str, Any]) -> tuple[str, str]:
    kinds = [name for name in ("message", "broadcast") if given.get(name) is not None]
    if len(kinds) != 1:
        problem = "both message and broadcast are given" if kinds else "nothing says what it makes"
        raise Invalid(problem, field="message", remedy="give `message` or `broadcast`, one of them")
    return kinds[0], orjson.dumps(given[kinds[0]]).decode()


def _name(said: str | None, rule: str) -> str:
    name = describe_rule(rule)[:_LONGEST_NAME] if said is None else said.strip()
    if not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
        raise Invalid(
            "the name is empty, too long or has control characters",
            field="name",
            remedy=f"use 1 to {_LONGEST_NAME} printable characters",
        )
    return name


def _policy(said: str | None) -> str:
    if said is not None and said not in catch_up.CATCH_UP_POLICIES:
        raise Invalid(
            f"catch_up is {said[:40]!r}",
            field="catch_up",
            remedy=f"use {', '.join(catch_up.CATCH_UP_POLICIES)}",
        )
    return said or catch_up.LATEST


def _grace(given: Mapping[str, Any], before: Row | None) -> int:
    if "catch_up_window" not in given and before is not None:
        return int(before["catch_up_window"])
    said = given.get("catch_up_window")
    length = DEFAULT_CATCH_UP_WINDOW if said is None else parse_in(said, field="catch_up_window")
    if not timedelta(seconds=1) <= length <= MAX_CATCH_UP_WINDOW:
        raise Invalid(f"catch_up_window is {said!r}", field="catch_up_window", remedy="use 1s to 31d")
    return micros(length)


def to_request(row: Row) -> dict[str, Any]:
    """A row as a request for it would be written; times and lengths stay those of the row."""
    return {
        "name": row["name"],
        "rule": serialize_rule(row["rule"]),
        "timezone": row["timezone"],
        "count": row["most"],
        "skip": orjson.loads(row["rule"]).get("skip"),
        "catch_up": row["catch_up"],
        row["makes"]: orjson.loads(row["body"]),
    }


def timing_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """What decides when it fires; while that stays, the next run stays."""
    return tuple(row[name] for name in ("rule", "timezone", "start_at", "end_at"))
