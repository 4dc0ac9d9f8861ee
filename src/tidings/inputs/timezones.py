"""Time zones as people name them, and wall-clock times in them. Pure.

Two rules hold everywhere. Clocks go forward: a time that does not exist becomes the first one that does.
Clocks go back: of a time that comes twice, the first one counts.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from difflib import get_close_matches
from functools import cache
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from ..model.errors import Invalid
from ..model.time import SECOND, Instant, moment

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  (a wall clock's)
_MICROSECOND = timedelta(microseconds=1)


class ResolvedTime(NamedTuple):
    """The instant that a wall-clock time stands for, and what was decided if it was not plain."""

    at: Instant
    note: str | None = None


def parse_timezone(name: str, *, field: str = "timezone") -> ZoneInfo:
    """The zone of that name, or an error that names those that sound alike."""
    known = _known()
    if known.get(name.lower()) != name:
        near = _near(name, known)
        remedy = f"did you mean {' or '.join(near)}?" if near else "use a name such as UTC or Europe/Berlin"
        raise Invalid(f"there is no time zone {name[:60]!r}", field=field, remedy=remedy)
    return ZoneInfo(name)


def timezone_or_utc(name: str) -> ZoneInfo:
    """For showing what was stored, even if the zone has left the tables since."""
    return ZoneInfo(name if _known().get(name.lower()) == name else "UTC")


def resolve_wall_time(there: datetime, timezone: ZoneInfo) -> ResolvedTime:
    """The instant at which a clock on the wall of that zone shows this time."""
    first, second = _offsets(there, timezone)
    at = _instant(there, first)
    if first == second:
        return ResolvedTime(at)
    clock = f"{there:%H:%M:%S}".removesuffix(":00")
    if first > second:
        return ResolvedTime(at, f"clocks go back and {clock} comes twice: the first one")
    end = _end_of_gap(_instant(there, second), at, timezone)
    return ResolvedTime(end, f"clocks go forward and {clock} does not exist: the first time after it")


def wall_time(at: int, timezone: ZoneInfo) -> datetime:
    """What a clock in that zone shows at an instant; without its zone."""
    return moment(at).astimezone(timezone).replace(tzinfo=None, fold=0)


def instants_of(there: datetime, timezone: ZoneInfo) -> list[Instant]:
    """All instants at which the clock shows this time: one, two in an overlap, none in a gap."""
    first, second = _offsets(there, timezone)
    if first < second:
        return []
    return [_instant(there, first)] if first == second else [_instant(there, first), _instant(there, second)]


def overlap_length(there: datetime, timezone: ZoneInfo) -> timedelta:
    """How much of the clock comes twice around this time."""
    first, second = _offsets(there, timezone)
    return max(timedelta(), first - second)


def _offsets(there: datetime, timezone: ZoneInfo) -> tuple[timedelta, timedelta]:
    """Of the first and of the second reading; the second is larger in a gap."""
    first, second = (there.replace(tzinfo=timezone, fold=fold).utcoffset() for fold in (0, 1))
    return first or timedelta(), second or timedelta()


def _instant(there: datetime, offset: timedelta) -> Instant:
    return Instant((there - _EPOCH - offset) // _MICROSECOND)


def _end_of_gap(low: int, high: int, timezone: ZoneInfo) -> Instant:
    """The instant at which the offset changes; it lies after `low`, and not after `high`."""
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
    """Every zone by its name in small letters."""
    return {name.lower(): name for name in available_timezones()}


def _near(name: str, known: dict[str, str]) -> list[str]:
    """Names that differ in capitals, in a letter or two, or that are only the town."""
    small = name.strip().lower().replace(" ", "_")
    if small in known:
        return [known[small]]
    towns = [full for full in sorted(known) if full.rpartition("/")[2] == small]
    if not towns:
        towns = get_close_matches(small, known, 2, cutoff=0.75)
    if not towns:
        by_town: dict[str, str] = {}
        for full in sorted(known):
            by_town.setdefault(full.rpartition("/")[2], full)
        towns = [by_town[town] for town in get_close_matches(small, by_town, 2, cutoff=0.8)]
    return [known[full] for full in towns[:2]]
