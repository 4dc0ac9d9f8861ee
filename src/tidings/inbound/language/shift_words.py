"""Shift words: the hours of "night" or "morning" (a setting).

Times are minutes of the day, 0 to 1439. A shift whose end is not after its start ends on the next day.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from ...model.errors import Invalid

GRID = 30
"""Minutes: only whole and half hours are accepted."""

_TIME = re.compile(r"([01]\d|2[0-3])([0-5]\d)")
_NAME = re.compile(r"[a-z]+(?: [a-z]+)?")


class Hours(NamedTuple):
    """A start and an end time; None: not stated."""

    start: int | None
    end: int | None


class Shift(NamedTuple):
    """A word for hours."""

    name: str
    hours: Hours


DEFAULTS: Mapping[str, tuple[str, str]] = {
    "day": ("0600", "1800"),
    "night": ("1800", "0600"),
    "morning": ("0600", "1200"),
    "afternoon": ("1200", "1800"),
    "evening": ("1800", "0000"),
    "all day": ("0600", "0600"),
}
ALIASES: Mapping[str, str] = {
    "overnight": "night",
    "daytime": "day",
    "whole day": "all day",
    "entire day": "all day",
    "full day": "all day",
    "24 hours": "all day",
    "all night": "night",
    "nighttime": "night",
    "daylight": "day",
    "day and night": "all day",
}


def shift_words(settings: Mapping[str, tuple[str, str]] | None = None) -> dict[str, Shift]:
    """Return all shift words, with the settings overriding the defaults; raises Invalid."""
    hours = {**DEFAULTS, **(settings or {})}
    words = {name: Shift(name, Hours(_read(name, start), _read(name, end))) for name, (start, end) in hours.items()}
    return words | {alias: words[name] for alias, name in ALIASES.items() if alias not in words}


def minutes(time: str) -> int:
    """Parse HHMM as minutes of the day."""
    return int(time[:2]) * 60 + int(time[2:])


def hhmm(at: int) -> str:
    """Format minutes of the day as HHMM."""
    return f"{at // 60 % 24:02d}{at % 60:02d}"


def _read(name: str, time: str) -> int:
    if not _NAME.fullmatch(name):
        remedy = "use one or two lowercase words"
        raise Invalid(f"invalid shift word {name[:40]!r}", field="inbound.shifts", remedy=remedy)
    if not _TIME.fullmatch(time) or minutes(time) % GRID:
        remedy = "write whole or half hours as HHMM, such as 1800 or 0630"
        raise Invalid(f"the shift {name!r} has the invalid time {time[:10]!r}", field="inbound.shifts", remedy=remedy)
    return minutes(time)
