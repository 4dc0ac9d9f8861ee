"""Describe a recurrence rule in plain English, so that mistakes are visible. Pure."""

from __future__ import annotations

import calendar
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import orjson
from cronsim import CronSim

from ...model import durations
from .recurrence import CRON_ALIASES, WEEKDAYS

_DAYS = dict(zip(WEEKDAYS, calendar.day_name, strict=True))


def describe_rule(stored: str) -> str:
    """A stored rule in plain English."""
    rule = orjson.loads(stored)
    kind = next((name for name in _WORDS if name in rule), None)
    if kind is None:
        return "an unknown rule"
    skipped = len(rule.get("excluded_dates", ()))
    but = f", except on {skipped} date{'s' * (skipped > 1)}" if skipped else ""
    return f"{_WORDS[kind](rule[kind])}{but}"


def _cron(expression: str) -> str:
    fields = CRON_ALIASES.get(expression, expression)
    try:
        said = CronSim(fields, datetime(2000, 1, 1)).explain()  # noqa: DTZ001  (any time will do)
    except (ValueError, AssertionError, IndexError, NotImplementedError):
        return f"by the cron rule {expression}"  # valid, but the library cannot describe it
    return said[:1].lower() + said[1:]


def _weekly(rule: dict[str, Any]) -> str:
    days = rule["on"]
    if days == list(WEEKDAYS[:5]):
        return f"Monday to Friday at {_clocks(rule)}"
    return f"every {_joined([_DAYS[day] for day in days])} at {_clocks(rule)}"


def _monthly(rule: dict[str, Any]) -> str:
    days = _joined([_month_day(day) for day in rule["on"]])
    late = any(isinstance(day, int) and day > 28 for day in rule["on"])
    short = "" if not late else f"; in a month without that day {_short(rule)}"
    return f"on the {days} of every month at {_clocks(rule)}{short}"


def _yearly(rule: dict[str, Any]) -> str:
    days = _joined([f"{int(day[3:])} {calendar.month_name[int(day[:2])]}" for day in rule["on"]])
    short = f"; in other years {_short(rule, 'on 28 February')}" if "02-29" in rule["on"] else ""
    return f"every year on {days} at {_clocks(rule)}{short}"


def _short(rule: dict[str, Any], last: str = "on the last day") -> str:
    return last if rule["short_months"] == "last" else "not at all"


def _month_day(day: int | str) -> str:
    if day == "last":
        return "last day"
    if isinstance(day, str):
        place, weekday = day.split()
        return f"{place} {weekday.capitalize()}"
    ending = {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th") if day not in (11, 12, 13) else "th"
    return f"{day}{ending}"


def _clocks(rule: dict[str, Any]) -> str:
    return _joined([clock.removesuffix(":00") for clock in rule["at"]])


def _joined(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


_WORDS: Mapping[str, Callable[[Any], str]] = {
    "cron": _cron,
    "every": lambda length: f"every {durations.humanize(durations.parse(length))}",
    "daily": lambda rule: f"every day at {_clocks(rule)}",
    "weekly": _weekly,
    "monthly": _monthly,
    "yearly": _yearly,
    "rrule": lambda rule: f"by the rule {rule}",
}
