"""Time zone names, and wall-clock times across clock changes (DST). Pure.

A time in a gap (clocks go forward) becomes the first existing time after it. Of an ambiguous time (clocks go
back) the first occurrence counts.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from difflib import get_close_matches
from functools import cache
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from ..model.errors import Invalid
from ..model.time import SECOND, Instant, moment

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  (wall-clock time)
_MICROSECOND = timedelta(microseconds=1)


class ResolvedTime(NamedTuple):
    """The instant of a wall-clock time, with a note if it was in a gap or ambiguous."""

    at: Instant
    note: str | None = None


def parse_timezone(name: str, *, field: str = "timezone") -> ZoneInfo:
    """Return the time zone, or raise Invalid with similar names."""
    known = _known()
    if known.get(name.lower()) != name:
        near = _near(name, known)
        remedy = f"did you mean {' or '.join(near)}?" if near else "use a name such as UTC or Europe/Berlin"
        raise Invalid(f"unknown time zone {name[:60]!r}", field=field, remedy=remedy)
    return ZoneInfo(name)


def timezone_or_utc(name: str) -> ZoneInfo:
    """Return a stored time zone, or UTC if it is no longer known."""
    return ZoneInfo(name if _known().get(name.lower()) == name else "UTC")


def resolve_wall_time(there: datetime, timezone: ZoneInfo) -> ResolvedTime:
    """Return the instant of a wall-clock time."""
    first, second = _offsets(there, timezone)
    at = _instant(there, first)
    if first == second:
        return ResolvedTime(at)
    clock = f"{there:%H:%M:%S}".removesuffix(":00")
    if first > second:
        return ResolvedTime(at, f"clocks go back and {clock} occurs twice: the first occurrence")
    end = _end_of_gap(_instant(there, second), at, timezone)
    return ResolvedTime(end, f"clocks go forward and {clock} does not exist: the first time after it")


def wall_time(at: int, timezone: ZoneInfo) -> datetime:
    """Return the naive wall-clock time at an instant."""
    return moment(at).astimezone(timezone).replace(tzinfo=None, fold=0)


def instants_of(there: datetime, timezone: ZoneInfo) -> list[Instant]:
    """Return all instants of a wall-clock time: one, two in an overlap, none in a gap."""
    first, second = _offsets(there, timezone)
    if first < second:
        return []
    return [_instant(there, first)] if first == second else [_instant(there, first), _instant(there, second)]


def overlap_length(there: datetime, timezone: ZoneInfo) -> timedelta:
    """Return the length of the overlap around this time."""
    first, second = _offsets(there, timezone)
    return max(timedelta(), first - second)


def _offsets(there: datetime, timezone: ZoneInfo) -> tuple[timedelta, timedelta]:
    """Return the offsets for fold 0 and 1; the second is larger in a gap."""
    first, second = (there.replace(tzinfo=timezone, fold=fold).utcoffset() for fold in (0, 1))
    return first or timedelta(), second or timedelta()


def _instant(there: datetime, offset: timedelta) -> Instant:
    return Instant((there - _EPOCH - offset) // _MICROSECOND)


def _end_of_gap(low: int, high: int, timezone: ZoneInfo) -> Instant:
    """Find the instant of the clock change in (low, high]."""
    before = moment(low).astimezone(timezone).utcoffset()
    while high - low > SECOND:
        middle = low + max(1, (high - low) // (2 * SECOND)) * SECOND
        if moment(middle).astimezone(timezone).utcoffset() == before:
            low = middle
        else:
            high = middle
    return Instant(high // SECOND * SECOND)


@cache
def _known() -> dict[str, str]:
    """Return all time zones by lowercase name."""
    return {name.lower(): name for name in available_timezones()}


def _near(name: str, known: dict[str, str]) -> list[str]:
    """Return names that differ in case or in a few letters, or that end with this city."""
    small = name.strip().lower().replace(" ", "_")
    if small in known:
        return [known[small]]
    cities = [full for full in sorted(known) if full.rpartition("/")[2] == small]
    if not cities:
        cities = get_close_matches(small, known, 2, cutoff=0.75)
    if not cities:
        by_city: dict[str, str] = {}
        for full in sorted(known):
            by_city.setdefault(full.rpartition("/")[2], full)
        cities = [by_city[city] for city in get_close_matches(small, by_city, 2, cutoff=0.8)]
    return [known[full] for full in cities[:2]]
