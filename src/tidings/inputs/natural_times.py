"""Times as ISO 8601 with an offset or in natural language ("tomorrow 9am", "in 10 min").

Ambiguous input is rejected with a remedy. Words are checked before they reach the date parser, because it
ignores what it does not understand ("tomorrow 25:00", "tomorrow 0700-1200") and reads bare numbers as years
or months. It gets the current time as an argument and never reads the system clock.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from ..model import durations
from ..model.errors import Invalid
from ..model.time import Instant, instant, micros, moment
from .timezones import resolve_wall_time

MAX_DELAY = timedelta(days=36_525)
LATEST = instant(datetime(9999, 1, 1, tzinfo=UTC))  # later times cannot be shown in every time zone

_MAX_TEXT = 100
_EXAMPLES = "Write 2026-11-16T09:00:00+01:00, 2026-11-16T08:00:00Z, 'tomorrow 9am' or 'in 10 min'"
_FUTURE = "Words always mean the future; write a time in the past as ISO 8601"
_LOOKS_ISO = re.compile(r"\d{4}-?(?:\d|w\d)")
_ISO = re.compile(r"(?:\d{4}-\d\d-\d\d|\d{8}|\d{4}-?W\d\d-?\d)(?P<time>[T ].+)?")
_CLOCK = re.compile(
    r"(?<![\d.:+-])(?:(\d{1,2}):(\d{2})(?::(\d{2}))?(?:\s*([ap])\.?m\b\.?)?|(\d{1,2})\s*([ap])\.?m\b\.?|noon\b)"
    r"(?![\d.:-])"
)
_NUMERIC_DATE = re.compile(r"(?<!\d)(\d{1,2})[/.-](\d{1,2})[/.-]\d{2,4}(?!\d)")
_PAST = re.compile(r"\b(?:yesterday|ago|last)\b")
_AHEAD = re.compile(r"in\s+(?P<length>.+)|(?P<before>.+?)\s+from\s+now")
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_UNITS = frozenset({"day", "days", "week", "weeks"})
_FILLERS = frozenset({"today", "tomorrow", "next", "this", "the", "in", "a", "after", "of", "on", "at"})
_NUMBER = re.compile(r"(?:[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?|20\d\d")


def parse_when(text: str, *, now: int, timezone: ZoneInfo, field: str = "at") -> Instant:
    """Parse a time; words are read in `timezone` and always mean the future.

    ISO times may be in the past; words that mean the past are rejected.
    """
    words = " ".join(text.lower().split())
    if not words or len(words) > _MAX_TEXT:
        raise Invalid("the time is empty" if not words else "the time is too long", remedy=_EXAMPLES, field=field)
    if re.fullmatch(r"[\d.,+-]+", words) and not re.fullmatch(r"\d{4}-\d\d-\d\d", words):
        raise Invalid(f"{text!r} is only a number, which is ambiguous", remedy=_EXAMPLES, field=field)
    if _LOOKS_ISO.match(words):
        return _bounded(_iso(text.strip(), timezone, field), text, field)
    if numeric := _NUMERIC_DATE.search(words):
        raise _numeric_date(text, int(numeric[1]), int(numeric[2]), field)
    if _PAST.search(words):
        raise Invalid(f"{text!r} is in the past", remedy=_FUTURE, field=field)
    at = _now_or_ahead(words, now)
    if at is None:
        at = _words(words.replace("tonight", "today"), text, now, timezone, field)
        if at < now:
            ago = durations.humanize(timedelta(microseconds=now - at))
            raise Invalid(f"{text!r} was {ago} ago", remedy=_FUTURE, field=field)
    return _bounded(at, text, field)


def parse_in(text: str, *, field: str = "in") -> timedelta:
    """Parse a duration from now: "10m", "10 min", "1h30m", "PT10M"; a number without a unit is rejected."""
    words = " ".join(text.lower().split()).removeprefix("in ")
    try:
        if re.fullmatch(r"[\d.+-]*", words):
            raise ValueError(f"{text!r} has no unit")
        length = durations.parse(words)
    except ValueError as error:
        raise Invalid(str(error), remedy="Write 30s, 10m, 2h or 7d", field=field) from None
    if length > MAX_DELAY:
        raise Invalid(f"{text!r} is more than a hundred years", remedy="Write 30s, 10m, 2h or 7d", field=field)
    return length


def describe_time(at: int, timezone: ZoneInfo, *, now: int) -> str:
    """Describe a time in full, so that misunderstandings are visible.

    For example "Mon 16 Nov 2026 09:00:00 CET (2026-11-16T08:00:00Z), in 10 min".
    """
    there, utc = moment(at).astimezone(timezone), moment(at)
    away = timedelta(microseconds=at - now)
    if abs(away) < timedelta(seconds=1):
        distance = "now"
    else:
        distance = f"in {durations.humanize(away)}" if away > timedelta(0) else f"{durations.humanize(-away)} ago"
    return f"{there:%a %d %b %Y %H:%M:%S %Z} ({utc:%Y-%m-%dT%H:%M:%SZ}), {distance}"


def _numeric_date(text: str, first: int, second: int, field: str) -> Invalid:
    """The error for 03/04/2027, which means March in some countries and April in others."""
    if first != second and 1 <= first <= 12 and 1 <= second <= 12:
        either = f"{first} {_MONTHS[second - 1].title()} or {second} {_MONTHS[first - 1].title()}"
        return Invalid(f"{text!r} is ambiguous: it may mean {either}", remedy=_EXAMPLES, field=field)
    return Invalid(f"{text!r} has a date in numbers, whose order differs by country", remedy=_EXAMPLES, field=field)


def _iso(text: str, timezone: ZoneInfo, field: str) -> Instant:
    """Parse ISO 8601; a time without an offset is rejected, with both ways to write it."""
    shape = _ISO.fullmatch(text.upper())
    try:
        if not shape:
            raise ValueError("not in ISO 8601 format")
        there = datetime.fromisoformat(shape[0])
    except ValueError as error:
        raise Invalid(f"{text!r} is not a valid time ({error})", remedy=_EXAMPLES, field=field) from None
    if there.tzinfo is not None:
        return instant(there)
    lacks = "time zone" if shape["time"] else "time of day"
    local = moment(resolve_wall_time(there, timezone).at).astimezone(timezone)
    remedy = f"Write {local.isoformat()} for {timezone.key}, or {there.isoformat()}Z for UTC"
    raise Invalid(f"{text!r} has no {lacks}", remedy=remedy, field=field)


def _now_or_ahead(words: str, now: int) -> Instant | None:
    """Parse "now", "in 10 min", "1 hour from now": exact durations, independent of clock changes."""
    if words == "now":
        return Instant(now)
    found = _AHEAD.fullmatch(words)
    if not found:
        return None
    length = re.sub(r"^half an? hour$", "30 min", found["length"] or found["before"])
    try:
        return Instant(now + micros(parse_in(re.sub(r"^an? ", "1 ", length))))
    except Invalid:
        return None  # "in 2 days at 9am" is for the date parser


def _words(words: str, text: str, now: int, timezone: ZoneInfo, field: str) -> Instant:
    """Parse a day in words with exactly one time of day."""
    clocks = list(_CLOCK.finditer(words))
    if len(clocks) != 1:
        problem = f"{text!r} names two times" if clocks else f"{text!r} has no valid time of day"
        raise Invalid(problem, remedy=_EXAMPLES, field=field)
    at = _time_of_day(clocks[0])
    day = (words[: clocks[0].start()] + " " + words[clocks[0].end() :]).replace(",", " ").split()
    if at is None or not _is_unambiguous(day):
        problem = f"{text!r} has no valid time of day" if at is None else f"{text!r} is not understood"
        raise Invalid(problem, remedy=_EXAMPLES, field=field)
    base = moment(now).astimezone(timezone).replace(tzinfo=None)
    found = _parse_date(f"{' '.join(day)} {at:%H:%M:%S}", base)
    if found is None or found.time() != at or not _same_weekday(day, found):
        raise Invalid(f"{text!r} is not a valid time", remedy=_EXAMPLES, field=field)
    if _is_bare_weekday(day) and found - base > timedelta(days=7):
        found -= timedelta(days=7)  # "monday 10:00" on a Monday at 9:00 is today
    return resolve_wall_time(found, timezone).at


def _time_of_day(found: re.Match[str]) -> time | None:
    """Return the time of day, or None if it is invalid (25:00, 13pm)."""
    if found[0] == "noon":
        return time(12)
    hour, minute, second = int(found[1] or found[5]), int(found[2] or 0), int(found[3] or 0)
    half = found[4] or found[6]
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half == "p" else 0)
    return time(hour, minute, second) if hour < 24 and minute < 60 and second < 60 else None


def _is_unambiguous(day: list[str]) -> bool:
    """Return whether each word is unambiguous: a number needs a month or a unit, a month needs a day."""
    numbers = [word for word in day if _NUMBER.fullmatch(word)]
    years = [number for number in numbers if number.isdigit() and len(number) == 4]
    words = [word for word in day if word not in numbers]
    months = [word for word in words if _name(word, _MONTHS) is not None]
    days = len(numbers) - len(years)
    if (numbers and not months and not _UNITS & set(words)) or (months and not days):
        return False
    known = all(word in _FILLERS | _UNITS or word in months or _name(word, _WEEKDAYS) is not None for word in words)
    return known and len(years) <= 1 and days <= 1


def _name(word: str, names: tuple[str, ...]) -> int | None:
    """Return the index of a full or abbreviated name ("mon", "sept.")."""
    short = word.rstrip(".")
    if len(short) < 3:
        return None
    return next((index for index, name in enumerate(names) if name.startswith(short)), None)


def _is_bare_weekday(day: list[str]) -> bool:
    words = [word for word in day if word not in ("at", "on")]
    return len(words) == 1 and _name(words[0], _WEEKDAYS) is not None


def _same_weekday(day: list[str], found: datetime) -> bool:
    """Check the weekday: the parser accepts "Tue 16 Nov 2026", which is a Monday."""
    named = {index for word in day if (index := _name(word, _WEEKDAYS)) is not None}
    return named <= {found.weekday()}


def _parse_date(words: str, base: datetime) -> datetime | None:
    """Call the library, which is imported here because the import takes most of a second."""
    import dateparser

    found: datetime | None = dateparser.parse(
        words,
        languages=["en"],
        settings={
            "RELATIVE_BASE": base,
            "PREFER_DATES_FROM": "future",
            "RETURN_AS_TIMEZONE_AWARE": False,
            "PARSERS": ["relative-time", "absolute-time"],
        },
    )
    return found


def _bounded(at: Instant, text: str, field: str) -> Instant:
    """Raise Invalid for years that must be typing errors."""
    if not 0 <= at < LATEST:
        raise Invalid(f"{text!r} is not between 1970 and 9998", remedy="Check the year", field=field)
    return at
