"""RRULE (RFC 5545) on wall-clock time: parsed strictly, and iterated from any time.

A separate engine, tested against dateutil: dateutil iterates from DTSTART each time, searches for a rule that
never fires until the year 9999, and takes `BYDAY=MO,1FR` for Mondays that are also first Fridays.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from itertools import islice, product
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from ...model.errors import Invalid

FREQUENCIES = ("YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY")
MAX_COUNT = 10_000
MAX_TIMES = 1440  # per day, by BYHOUR, BYMINUTE and BYSECOND together
_LAST_YEAR = 2400
_PATIENCE = 50 * 366  # days without a match after which the search ends
_BUDGET = 100_000  # times tested without a match after which it ends
_SMALLEST = {"HOURLY": 3600, "MINUTELY": 60, "SECONDLY": 1}
_DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_BYDAY = re.compile(r"([+-]?\d{1,2})?(MO|TU|WE|TH|FR|SA|SU)")
_RANGES = {
    "BYSECOND": (0, 59),
    "BYMINUTE": (0, 59),
    "BYHOUR": (0, 23),
    "BYMONTHDAY": (1, 31),
    "BYYEARDAY": (1, 366),
    "BYWEEKNO": (1, 53),
    "BYMONTH": (1, 12),
    "BYSETPOS": (1, 366),
}
_SIGNED = ("BYMONTHDAY", "BYYEARDAY", "BYWEEKNO", "BYSETPOS")
_EXAMPLE = "for example FREQ=WEEKLY;BYDAY=MO,WE;BYHOUR=9;BYMINUTE=0"


class RruleParts(NamedTuple):
    """A parsed RRULE."""

    freq: str
    interval: int
    most: int | None  # COUNT
    until: datetime | None  # aware if it was given in UTC
    week_start: int
    by: Mapping[str, tuple[Any, ...]]  # BYDAY: (place or None, weekday)


def parse(text: str) -> RruleParts:
    """Parse an RRULE; raises Invalid naming the wrong part."""
    given = _split(text)
    freq = given.pop("FREQ", "")
    if freq not in FREQUENCIES:
        raise _wrong(f"FREQ is {freq or 'missing'}", f"use one of: {', '.join(FREQUENCIES)}")
    interval = _number(given.pop("INTERVAL", "1"), "INTERVAL", 1, 100_000)
    count = given.pop("COUNT", None)
    until = given.pop("UNTIL", None)
    if count is not None and until is not None:
        raise _wrong("both COUNT and UNTIL are given", "give one of them")
    start = given.pop("WKST", "MO")
    if start not in _DAYS:
        raise _wrong(f"WKST is {start}", f"use one of: {', '.join(_DAYS)}")
    by = {name: _by(name, value) for name, value in given.items()}
    parts = RruleParts(
        freq,
        interval,
        None if count is None else _number(count, "COUNT", 1, MAX_COUNT),
        None if until is None else _until(until),
        _DAYS.index(start),
        by,
    )
    _check(parts)
    return parts


def times(parts: RruleParts, begin: datetime, timezone: ZoneInfo) -> Callable[[datetime], Iterator[datetime]]:
    """The rule's wall-clock times after any time; `begin` (DTSTART) fills in unspecified parts."""
    engine = _small(parts, begin) if parts.freq in _SMALLEST else _large(parts, begin)
    until = parts.until
    if until is not None and until.tzinfo is not None:
        until = until.astimezone(timezone).replace(tzinfo=None)
    if parts.most is not None:
        counted = list(islice(_from(engine, begin), parts.most))
        until = counted[-1] if len(counted) == parts.most else until

    def after(there: datetime) -> Iterator[datetime]:
        for found in engine(there) if there >= begin else _from(engine, begin):
            if until is not None and found > until:
                return
            yield found

    return after


def _from(engine: Callable[[datetime], Iterator[datetime]], begin: datetime) -> Iterator[datetime]:
    return engine(begin - timedelta(seconds=1))


# -- reading


def _split(text: str) -> dict[str, str]:
    body = text.strip().upper().removeprefix("RRULE:")
    if not body or len(body) > 500:
        raise _wrong("the rule is empty" if not body else "the rule is too long", _EXAMPLE)
    if "DTSTART" in body or "EXDATE" in body or "\n" in body:
        raise _wrong(
            "only the RRULE itself is accepted",
            "give DTSTART as `start` and `timezone`, and EXDATE as `excluded_dates`",
        )
    given: dict[str, str] = {}
    for part in body.split(";"):
        name, equals, value = part.partition("=")
        if not equals or not value:
            raise _wrong(f"{part[:40]!r} is not NAME=VALUE", _EXAMPLE)
        if name in given:
            raise _wrong(f"{name} is given twice", "give it once")
        known = ("FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "BYDAY", *_RANGES)
        if name not in known:
            raise _wrong(f"there is no part {name[:40]!r}", f"known parts: {', '.join(known)}")
        given[name] = value
    return given


def _by(name: str, value: str) -> tuple[Any, ...]:
    if name == "BYDAY":
        return tuple(sorted({_day(word) for word in value.split(",")}, key=str))
    low, high = _RANGES[name]
    return tuple(sorted({_number(word, name, low, high, signed=name in _SIGNED) for word in value.split(",")}))


def _day(word: str) -> tuple[int | None, int]:
    found = _BYDAY.fullmatch(word)
    place = int(found[1]) if found and found[1] else None
    if not found or place == 0 or abs(place or 1) > 53:
        raise _wrong(f"BYDAY has {word[:20]!r}", "use MO to SU, or with a place: 1MO, -1FR")
    return place, _DAYS.index(found[2])


def _number(word: str, name: str, low: int, high: int, *, signed: bool = False) -> int:
    bare = word[1:] if signed and word[:1] in "+-" else word
    if not (bare.isascii() and bare.isdigit() and len(bare) < 8 and low <= int(bare) <= high):
        also = f", or -{high} to -{low} from the end" if signed else ""
        raise _wrong(f"{name} has {word[:20]!r}", f"use {low} to {high}{also}")
    return int(word)


def _until(value: str) -> datetime:
    for form in ("%Y%m%dT%H%M%SZ", "%Y%m%dT%H%M%S", "%Y%m%d"):
        try:
            found = datetime.strptime(value, form)  # noqa: DTZ007  (the zone is the schedule's)
        except ValueError:
            continue
        if form.endswith("Z"):
            return found.replace(tzinfo=UTC)
        return found if "T" in value else found + timedelta(days=1, seconds=-1)
    raise _wrong(f"UNTIL is {value[:20]!r}", "write 20261231T235959Z, or 20261231")


def _check(parts: RruleParts) -> None:
    """Reject combinations that RFC 5545 does not allow."""
    by, freq = parts.by, parts.freq
    if "BYWEEKNO" in by and freq != "YEARLY":
        raise _wrong(f"BYWEEKNO goes with FREQ=YEARLY only, not {freq}", "leave it out")
    if "BYYEARDAY" in by and freq in ("DAILY", "WEEKLY", "MONTHLY"):
        raise _wrong(f"BYYEARDAY does not go with FREQ={freq}", "use FREQ=YEARLY")
    if "BYMONTHDAY" in by and freq == "WEEKLY":
        raise _wrong("BYMONTHDAY does not go with FREQ=WEEKLY", "use FREQ=MONTHLY")
    if any(place is not None for place, _ in by.get("BYDAY", ())):
        if freq not in ("YEARLY", "MONTHLY"):
            raise _wrong(f"BYDAY with a place does not go with FREQ={freq}", "use FREQ=MONTHLY or YEARLY")
        if "BYWEEKNO" in by:
            raise _wrong("BYDAY with a place does not go with BYWEEKNO", "leave the place out")
    if "BYSETPOS" in by and (len(by) == 1 or freq in _SMALLEST):
        raise _wrong("BYSETPOS chooses among the days of another BY part", "add BYDAY, with FREQ=MONTHLY for example")
    named = [len(by.get(name, (0,))) for name in ("BYHOUR", "BYMINUTE", "BYSECOND")]
    if freq not in _SMALLEST and named[0] * named[1] * named[2] > MAX_TIMES:
        raise _wrong(f"it names more than {MAX_TIMES} times a day", "use FREQ=MINUTELY or SECONDLY")


def _wrong(problem: str, remedy: str) -> Invalid:
    return Invalid(f"the RRULE cannot be used: {problem}", field="rule", remedy=remedy)


# -- YEARLY, MONTHLY, WEEKLY, DAILY


def _large(parts: RruleParts, begin: datetime) -> Callable[[datetime], Iterator[datetime]]:
    """Per period: matching days times the times of day, filtered by BYSETPOS."""
    whole = parts._replace(by=_explicit(parts, begin))
    by = whole.by
    clocks = [
        timedelta(hours=hour, minutes=minute, seconds=second)
        for hour, minute, second in product(by["BYHOUR"], by["BYMINUTE"], by["BYSECOND"])
    ]

    def after(there: datetime) -> Iterator[datetime]:
        turn, matched = _turn(whole, begin, there), there
        while True:
            first, beyond = _period(whole, begin, turn)
            if first.year >= _LAST_YEAR or first - matched > timedelta(days=_PATIENCE):
                return
            days = [day for day in _days(first, beyond) if _is_day(whole, day)]
            found = [day + clock for day in days for clock in clocks]
            for one in _chosen(found, by.get("BYSETPOS")):
                if one > there and one >= begin:
                    matched = one
                    yield one
            turn += 1

    return after


def _explicit(parts: RruleParts, begin: datetime) -> dict[str, tuple[Any, ...]]:
    """The BY parts with unspecified ones taken from `begin`."""
    by = dict(parts.by)
    if not by.keys() & {"BYWEEKNO", "BYYEARDAY", "BYMONTHDAY", "BYDAY"}:
        if parts.freq == "YEARLY":
            by.setdefault("BYMONTH", (begin.month,))
        if parts.freq in ("YEARLY", "MONTHLY"):
            by["BYMONTHDAY"] = (begin.day,)
        elif parts.freq == "WEEKLY":
            by["BYDAY"] = ((None, begin.weekday()),)
    for name, value in (("BYHOUR", begin.hour), ("BYMINUTE", begin.minute), ("BYSECOND", begin.second)):
        by.setdefault(name, (value,))
    return by


def _turn(parts: RruleParts, begin: datetime, there: datetime) -> int:
    """The index of the period that contains a time."""
    if there <= begin:
        return 0
    match parts.freq:
        case "YEARLY":
            passed = there.year - begin.year
        case "MONTHLY":
            passed = (there.year - begin.year) * 12 + there.month - begin.month
        case "WEEKLY":
            passed = (there - _period(parts, begin, 0)[0]).days // 7
        case _:
            passed = (there.date() - begin.date()).days
    return passed // parts.interval


def _period(parts: RruleParts, begin: datetime, turn: int) -> tuple[datetime, datetime]:
    """The start and end of a period."""
    step = turn * parts.interval
    match parts.freq:
        case "YEARLY":
            year = begin.year + step
            return _midnight(year, 1, 1), _midnight(year + 1, 1, 1)
        case "MONTHLY":
            months = begin.year * 12 + begin.month - 1 + step
            beyond = months + 1
            return _midnight(months // 12, months % 12 + 1, 1), _midnight(beyond // 12, beyond % 12 + 1, 1)
        case "WEEKLY":
            start = _midnight(begin.year, begin.month, begin.day)
            start += timedelta(days=7 * step - (begin.weekday() - parts.week_start) % 7)
            return start, start + timedelta(days=7)
    start = _midnight(begin.year, begin.month, begin.day) + timedelta(days=step)
    return start, start + timedelta(days=1)


def _midnight(year: int, month: int, day: int) -> datetime:
    return datetime(min(year, _LAST_YEAR + 1), month, day)  # noqa: DTZ001  (a wall clock's)


def _days(first: datetime, beyond: datetime) -> Iterator[datetime]:
    while first < beyond:
        yield first
        first += timedelta(days=1)


def _chosen(found: list[datetime], places: tuple[int, ...] | None) -> list[datetime]:
    if places is None:
        return found
    size = len(found)
    return sorted({found[p - 1 if p > 0 else p] for p in places if -size <= p <= size})


# -- days


def _is_day(parts: RruleParts, day: date) -> bool:
    """Whether a day matches all BY parts about days."""
    by = parts.by
    if "BYMONTH" in by and day.month not in by["BYMONTH"]:
        return False
    length = calendar.monthrange(day.year, day.month)[1]
    if "BYMONTHDAY" in by and not {day.day, day.day - length - 1} & set(by["BYMONTHDAY"]):
        return False
    of_year, year = day.timetuple().tm_yday, 366 if calendar.isleap(day.year) else 365
    if "BYYEARDAY" in by and not {of_year, of_year - year - 1} & set(by["BYYEARDAY"]):
        return False
    if "BYWEEKNO" in by and not set(_weeks(day, parts.week_start)) & set(by["BYWEEKNO"]):
        return False
    if "BYDAY" not in by:
        return True
    in_month = parts.freq == "MONTHLY" or "BYMONTH" in by
    place, size = (day.day, length) if in_month else (of_year, year)
    weekday = day.weekday()
    wanted = by["BYDAY"]
    return (
        (None, weekday) in wanted
        or ((place + 6) // 7, weekday) in wanted
        or (-((size - place) // 7) - 1, weekday) in wanted
    )


def _weeks(day: date, week_start: int) -> tuple[int, int]:
    """The week number from the start and from the end of the year; week 1 has at least four days."""
    pivot = date(day.year, day.month, day.day) + timedelta(days=3 - (day.weekday() - week_start) % 7)
    number = (pivot.timetuple().tm_yday + 6) // 7
    last = date(pivot.year, 12, 28)
    last += timedelta(days=3 - (last.weekday() - week_start) % 7)
    return number, number - (last.timetuple().tm_yday + 6) // 7 - 1


# -- HOURLY, MINUTELY, SECONDLY


def _small(parts: RruleParts, begin: datetime) -> Callable[[datetime], Iterator[datetime]]:
    """Per matching day: its matching times."""

    def after(there: datetime) -> Iterator[datetime]:
        day, idle, tried = max(there, begin).date(), 0, 0
        while idle < _PATIENCE and tried < _BUDGET and day.year < _LAST_YEAR:
            idle += 1
            if _is_day(parts, day):
                for found in _of_day(parts, begin, day):
                    if found is None:
                        tried += 1
                        if tried >= _BUDGET:
                            return
                    elif found > there and found >= begin:
                        idle = tried = 0
                        yield found
            day += timedelta(days=1)

    return after


def _of_day(parts: RruleParts, begin: datetime, day: date) -> Iterator[datetime | None]:
    """The times of one day; None for each candidate without a match."""
    by, unit = parts.by, _SMALLEST[parts.freq]
    start = datetime(day.year, day.month, day.day)  # noqa: DTZ001  (a wall clock's)
    step = parts.interval * unit
    anchor = begin - timedelta(seconds=begin.minute * 60 + begin.second if unit == 3600 else begin.second)
    anchor = begin if unit == 1 else anchor
    passed = int((start - anchor).total_seconds())
    minutes = by.get("BYMINUTE") if unit < 3600 else None
    for hour in by.get("BYHOUR", range(24)):
        for minute in minutes or (0,):
            block, length = hour * 3600 + minute * 60, 60 if minutes else 3600
            first = block + -(passed + block) % step
            if first >= block + length:
                yield None
            for second in range(first, block + length, step):
                yield from _of_moment(parts, begin, start + timedelta(seconds=second))


def _of_moment(parts: RruleParts, begin: datetime, there: datetime) -> Iterator[datetime | None]:
    """Expand a step of the rule by its smaller BY parts."""
    by = parts.by
    if parts.freq == "HOURLY":
        for minute in by.get("BYMINUTE", (begin.minute,)):
            for second in by.get("BYSECOND", (begin.second,)):
                yield there.replace(minute=minute, second=second)
    elif parts.freq == "MINUTELY":
        for second in by.get("BYSECOND", (begin.second,)):
            yield there.replace(second=second)
    else:
        yield there if "BYSECOND" not in by or there.second in by["BYSECOND"] else None
