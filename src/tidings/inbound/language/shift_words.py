"""Shift words: what "night" or "morning" means to these squads (a setting).

Times are minutes of the clock, 0 to 1439. A shift whose end is not after its start runs over midnight.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from ...model.errors import Invalid

GRID = 30
"""Whole and half hours; anything else is asked about."""

_TIME = re.compile(r"([01]\d|2[0-3])([0-5]\d)")
_NAME = re.compile(r"[a-z]+(?: [a-z]+)?")


class Hours(NamedTuple):
    """From one time of the clock to another; None: not said."""

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
    """Every word by its spelling, the usual ones included; a setting replaces the usual hours."""
    told = {**DEFAULTS, **(settings or {})}
    words = {
        name: Shift(name, Hours(_read(name, start), _read(name, end))) for name, (start, end) in told.items()
    }
    return words | {alias: words[name] for alias, name in ALIASES.items() if alias not in words}


def minutes(time: str) -> int:
    """HHMM as minutes of the clock."""
    return int(time[:2]) * 60 + int(time[2:])


def hhmm(at: int) -> str:
    """Minutes of the clock as HHMM."""
    return f"{at // 60 % 24:02d}{at % 60:02d}"


def _read(name: str, time: str) -> int:
    if not _NAME.fullmatch(name):
        raise Invalid(
            f"{name[:40]!r} is no shift word",
            field="inbound.shifts",
            remedy="use one or two words in small letters",
        )
    if not _TIME.fullmatch(time) or minutes(time) % GRID:
        raise Invalid(
            f"the shift {name!r} has the time {time[:10]!r}",
            field="inbound.shifts",
            remedy="write whole or half hours as HHMM, such as 1800 or 0630",
        )
    return minutes(time)
