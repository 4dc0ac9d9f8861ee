"""Parse recurrence rules into their stored form. Pure.

A rule is an object with one of these:

    {"cron": "0 9 * * 1-5"}                     5 fields, 6 with seconds first, or @daily and its like
    {"every": "90m"}                            an interval
    {"daily": "09:00, 18:30"}                   or {"at": ["09:00", "18:30"]}
    {"weekly": "mon, fri 09:00"}                or {"on": ["mon", "fri"], "at": ["09:00"]}
    {"monthly": "1, 15, last 09:00"}            or {"on": [1, "last", "first monday"], "at": ["09:00"]}
    {"yearly": "12-24 18:00"}                   or {"on": ["12-24"], "at": ["18:00"]}
    {"rrule": "FREQ=WEEKLY;INTERVAL=2"}         RFC 5545, without DTSTART
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from difflib import get_close_matches
from typing import Any

import orjson
from cronsim import CronSim, CronSimError

from ...model import durations
from ...model.errors import Invalid
from ...model.time import micros
from . import rrules
from .recurrence import CRON_ALIASES, MIN_INTERVAL, ORDINALS, RULE_KINDS, WEEKDAYS

MAX_TIMES = 100  # times of one day
MAX_DAYS = 1000  # excluded dates
MAX_CRON_LENGTH = 200
_CRON_FIELDS = {
    "second": "0-59",
    "minute": "0-59",
    "hour": "0-23",
    "day-of-month": "1-31, L or LW",
    "month": "1-12 or JAN-DEC",
    "day-of-week": "0-7 or SUN-SAT, 5L, MON#1",
}
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?")
_MONTH_DAY = re.compile(r"(\d{1,2})-(\d{1,2})")
_FULL = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_KINDS = ", ".join(RULE_KINDS)
_SHORT = "short_months"


def parse_rule(given: Mapping[str, Any], *, anchor: int, excluded: list[Any] | None = None) -> str:
    """Parse a rule into its stored form; `anchor` is the start of an interval or RRULE."""
    kinds = [name for name in given if given[name] is not None]
    if len(kinds) != 1:
        problem = "the rule is empty" if not kinds else f"the rule has {' and '.join(sorted(kinds))[:80]} at once"
        raise _wrong(problem, f"give one of: {_KINDS}")
    kind, said = kinds[0], given[kinds[0]]
    reader = _READERS.get(kind)
    if reader is None:
        close = get_close_matches(kind, _READERS, 1)
        raise _wrong(
            f"there is no kind of rule {kind[:40]!r}",
            f"did you mean {close[0]!r}?" if close else f"use one of: {_KINDS}",
        )
    rule: dict[str, Any] = {kind: reader(said)}
    if kind in ("every", "rrule"):
        rule["anchor"] = anchor
    days = parse_days(excluded)
    if days:
        rule["excluded_dates"] = days
    return orjson.dumps(rule).decode()


def serialize_rule(stored: str) -> dict[str, Any]:
    """A stored rule as request fields."""
    return {name: value for name, value in orjson.loads(stored).items() if name in RULE_KINDS}


def parse_days(given: list[Any] | None) -> list[str]:
    """The excluded dates, sorted and unique."""
    days = set()
    for entry in given or ():
        try:
            if not isinstance(entry, str) or not re.fullmatch(r"\d{4}-\d\d-\d\d", entry):
                raise ValueError(entry)
            days.add(date.fromisoformat(entry).isoformat())
        except ValueError:
            raise Invalid(
                f"{str(entry)[:40]!r} is not a day", field="excluded_dates", remedy='write ["2026-12-25"]'
            ) from None
    if len(days) > MAX_DAYS:
        raise Invalid(f"excluded_dates has {len(days)} days", field="excluded_dates", remedy=f"use at most {MAX_DAYS}")
    return sorted(days)


def _cron(said: Any) -> str:
    text = " ".join(_text(said, "cron", "0 9 * * 1-5").split())
    if text.startswith("@"):
        if text.lower() not in CRON_ALIASES:
            raise _wrong(f"there is no {text[:20]!r}", f"use one of: {', '.join(CRON_ALIASES)}")
        return text.lower()
    if len(text) > MAX_CRON_LENGTH or len(text.split()) not in (5, 6):
        raise _wrong(
            f"the cron rule has {len(text.split())} fields",
            "write 5: minute, hour, day of month, month, day of week; or 6 with seconds first",
        )
    try:
        found = next(CronSim(text, datetime(2000, 1, 1)), None)  # noqa: DTZ001  (any time will do)
    except (CronSimError, AssertionError, ValueError) as error:
        raise _bad_cron(text, str(error)) from None
    if found is None:
        raise _wrong(f"the cron rule {text!r} never fires", "use days that occur within fifty years")
    return text


def _bad_cron(text: str, said: str) -> Invalid:
    name = said.removeprefix("Bad ")
    if name not in _CRON_FIELDS:
        return _wrong(f"the cron rule {text!r} is invalid", "for example 0 9 * * 1-5")
    fields = text.upper().split()
    place = list(_CRON_FIELDS).index(name) - (1 if len(fields) == 5 else 0)
    if name == "day-of-month" and _is_readable(fields[place]):
        return _wrong(f"the cron rule {text!r} never fires", "use a day that its months have")
    words = name.replace("-", " ")
    return _wrong(f"the {words} of the cron rule is {fields[place][:40]!r}", f"use {_CRON_FIELDS[name]}")


def _is_readable(days: str) -> bool:
    """Whether a day field is valid alone, so that only the month can be wrong."""
    try:
        CronSim(f"0 0 {days} * *", datetime(2000, 1, 1))  # noqa: DTZ001  (any time will do)
    except (CronSimError, AssertionError, ValueError):
        return False
    return True


def _every(said: Any) -> str:
    text = _text(said, "every", "90m").strip()
    try:
        if re.fullmatch(r"[\d.]*", text):
            raise ValueError(f"{text!r} has no unit")
        length = durations.parse(text)
    except ValueError as error:
        raise _wrong(str(error), "write 30s, 90m, 12h or 7d; for months use monthly") from None
    if micros(length) < MIN_INTERVAL or length > timedelta(days=3660):
        raise _wrong(f"{text!r} is too short or too long", "use 1s to ten years")
    return text


def _daily(said: Any) -> dict[str, Any]:
    return {"at": _clocks(_parts(said, "daily", ("at",))["at"])}


def _weekly(said: Any) -> dict[str, Any]:
    parts = _parts(said, "weekly", ("on", "at"))
    days = {_weekday(day) for day in _list(parts["on"], "on")}
    return {"on": [day for day in WEEKDAYS if day in days], "at": _clocks(parts["at"])}


def _monthly(said: Any) -> dict[str, Any]:
    parts = _parts(said, "monthly", ("on", "at"), _SHORT)
    days = dict.fromkeys(_month_day(day) for day in _list(parts["on"], "on"))
    return {"on": list(days), "at": _clocks(parts["at"]), _SHORT: _short_months(parts)}


def _yearly(said: Any) -> dict[str, Any]:
    parts = _parts(said, "yearly", ("on", "at"), _SHORT)
    days = sorted({_year_day(day) for day in _list(parts["on"], "on")})
    return {"on": days, "at": _clocks(parts["at"]), _SHORT: _short_months(parts)}


def _parts(said: Any, kind: str, needed: tuple[str, ...], *more: str) -> dict[str, Any]:
    """Parse an object, or a text with days first and then times of day."""
    if isinstance(said, str):
        clocks = [found.group() for found in _CLOCK.finditer(said)]
        days = [word.strip() for word in _CLOCK.sub(",", said).replace(" at ", ",").split(",")]
        on = [word for word in days if word and word != "at"]
        if "on" not in needed and on:
            raise _wrong(f"{on[0][:40]!r} is not a time of day", "write 09:00")
        return {"on": on, "at": clocks}
    if not isinstance(said, dict):
        raise _wrong(f"{kind} is neither a string nor an object", _EXAMPLES[kind])
    for name in said:
        if name not in (*needed, *more):
            raise _wrong(f"{kind} has no part {str(name)[:40]!r}", f"use {', '.join((*needed, *more))}")
    return {**dict.fromkeys(needed), **said}


def _list(said: Any, name: str) -> list[Any]:
    found = [said] if isinstance(said, str | int) else said
    if not isinstance(found, list) or not found or len(found) > MAX_TIMES:
        raise _wrong(f"`{name}` is missing or not a list", 'for example {"on": ["mon"], "at": ["09:00"]}')
    return found


def _clocks(said: Any) -> list[str]:
    found = set()
    for clock in _list(said, "at"):
        match = _CLOCK.fullmatch(clock.strip()) if isinstance(clock, str) else None
        if match is None:
            raise _wrong(f"{str(clock)[:40]!r} is not a time of day", "write 09:00, or 09:00:30")
        found.add(f"{int(match[1]):02}:{match[2]}:{match[3] or '00'}")
    return sorted(found)


def _weekday(said: Any) -> str:
    word = said.strip().lower().rstrip(".") if isinstance(said, str) else ""
    found = [short for short, full in zip(WEEKDAYS, _FULL, strict=True) if len(word) > 2 and full.startswith(word)]
    if not found:
        raise _wrong(f"{str(said)[:40]!r} is not a weekday", f"use {', '.join(WEEKDAYS)}")
    return found[0]


def _month_day(said: Any) -> int | str:
    word = str(said).strip().lower() if isinstance(said, str | int) and not isinstance(said, bool) else ""
    if word.isascii() and word.isdigit() and 1 <= int(word) <= 31:
        return int(word)
    if word in ("last", "last day"):
        return "last"
    place, _, weekday = word.partition(" ")
    if place in ORDINALS and weekday:
        return f"{place} {_FULL[WEEKDAYS.index(_weekday(weekday))]}"
    raise _wrong(f"{str(said)[:40]!r} is not a day of a month", "use 1 to 31, last, or first monday ... last friday")


def _year_day(said: Any) -> str:
    found = _MONTH_DAY.fullmatch(said.strip()) if isinstance(said, str) else None
    month, day = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= month <= 12 or not 1 <= day <= calendar.monthrange(2000, month)[1]:
        raise _wrong(f"{str(said)[:40]!r} is not a day of the year", "write 12-24 for 24 December")
    return f"{month:02}-{day:02}"


def _short_months(parts: Mapping[str, Any]) -> str:
    said = parts.get(_SHORT) or "skip"
    if said not in ("skip", "last"):
        raise _wrong(f"{_SHORT} is {str(said)[:40]!r}", "use skip (no occurrence), or last (the month's last day)")
    return str(said)


def _rrule(said: Any) -> str:
    text = _text(said, "rrule", "FREQ=WEEKLY;BYDAY=MO").strip()
    rrules.parse(text)
    return text.upper().removeprefix("RRULE:")


def _text(said: Any, kind: str, example: str) -> str:
    if not isinstance(said, str) or not said.strip() or not said.isprintable():
        raise _wrong(f"{kind} is not a string", f'for example {{"{kind}": "{example}"}}')
    return said


def _wrong(problem: str, remedy: str) -> Invalid:
    return Invalid(problem, field="rule", remedy=remedy)


_EXAMPLES = {
    "daily": 'for example "09:00"',
    "weekly": 'for example "mon, fri 09:00"',
    "monthly": 'for example "1, last 09:00"',
    "yearly": 'for example "12-24 18:00"',
}
_READERS = {
    "cron": _cron,
    "every": _every,
    "daily": _daily,
    "weekly": _weekly,
    "monthly": _monthly,
    "yearly": _yearly,
    "rrule": _rrule,
}
