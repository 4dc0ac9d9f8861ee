"""Days as people name them: "sat", "tomorrow", "the 5th", "1/5", "Jan 5", "next friday", "in two days"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, timedelta

from .holidays import PATTERN as _HOLIDAY
from .holidays import holiday
from .shift_words import Shift
from .tokens import DayMention, LocalMoment

_WEEKDAYS = (
    ("monday", "mon", "mondays", "mons"),
    ("tuesday", "tues", "tue", "tuesdays"),
    ("wednesday", "wed", "weds", "wednesdays", "wensday"),
    ("thursday", "thurs", "thur", "thu", "thursdays"),
    ("friday", "fri", "fridays"),
    ("saturday", "sat", "saturdays", "satuday"),
    ("sunday", "sun", "sundays"),
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NUMBERS = {"a": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7}
_AWAKE = 4 * 60
_BY_NAME = {name: index for index, names in enumerate(_WEEKDAYS) for name in names}

_WEEKDAY = "|".join(sorted(_BY_NAME, key=len, reverse=True))
_MONTH = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    "|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
)
_COUNT = "|".join(_NUMBERS)

PATTERNS: tuple[tuple[str, str], ...] = (
    ("holiday", rf"(?P<holiday>(?:{_HOLIDAY})(?: weekend)?)\b"),
    ("iso", r"(?P<iso>20\d\d-[01]\d-[0-3]\d)\b"),
    ("slashed", r"(?P<slashed>[01]?\d/[0-3]?\d(?:/(?:20)?\d\d)?)(?![\d/])"),
    ("named", rf"(?P<named>(?:{_MONTH})\.? (?:the )?[0-3]?\d(?:st|nd|rd|th)?(?:,? 20\d\d)?)\b(?![:-]\d)"),
    ("turned", rf"(?P<turned>(?:the )?[0-3]?\d(?:st|nd|rd|th)? (?:of )?(?:{_MONTH})(?: 20\d\d)?)\b"),
    ("ahead", rf"(?P<ahead>(?:a|one|two) weeks? from (?:today|tomorrow|{_WEEKDAY}))\b"),
    ("nights", rf"(?P<nights>(?:the |these )?(?:next|coming) (?:{_COUNT}|\d) nights)\b"),
    ("count", rf"(?P<count>in (?:{_COUNT}|\d) days?)\b"),
    ("overmorrow", r"(?P<overmorrow>(?:the )?day after tomorrow)\b"),
    (
        "weekend",
        r"(?P<weekend>(?:(?:all|the whole|whole|entire)(?: of)? )?(?:this |next |the )?(?:coming )?weekend)"
        r"s?\b",
    ),
    ("weekday", rf"(?P<weekday>(?:next |this |coming |this coming |on )?(?:{_WEEKDAY}))\b"),
    ("monthday", r"(?P<monthday>(?:the )?(?:[12]?\d|3[01])(?:st|nd|rd|th))\b(?! floor| crew| due| call| time| street)"),
    ("relative", r"(?P<relative>today|tonight|tomorrow|this (?=morning|afternoon|evening))\b ?"),
)


def days_of(kind: str, written: str, now: LocalMoment, night: Shift, whole: Shift) -> list[DayMention] | None:
    """Return the days of a phrase, or None if the date does not exist (February 31)."""
    words = written.strip()
    try:
        match kind:
            case "relative":
                return [_relative(words, now, night)]
            case "weekday":
                return [_weekday(words, now)]
            case "holiday":
                return [DayMention(holiday(words, now.operational), words)]
            case "weekend":
                return _weekend(words, now, whole)
            case "overmorrow":
                return [DayMention(now.today + timedelta(days=2), words)]
            case "nights":
                return _nights(words, now, night)
            case "count":
                return [DayMention(now.today + timedelta(days=_number(words.split()[1])), words)]
            case "ahead":
                return [_ahead(words, now, night)]
            case "monthday":
                return [DayMention(_monthday(int(re.sub(r"\D", "", words)), now.operational), words)]
            case "iso":
                return [DayMention(date.fromisoformat(words), words)]
            case _:
                return [DayMention(_dated(kind, words, now.operational), words)]
    except ValueError:
        return None


def next_week(day: DayMention, now: LocalMoment) -> DayMention:
    """Move a weekday to next week; weeks begin on Monday."""
    monday = now.operational - timedelta(days=now.operational.weekday())
    return day._replace(date=monday + timedelta(days=7 + day.date.weekday()), rolls=False)


def in_order(day: DayMention, before: DayMention | None) -> DayMention:
    """Order weekdays: in "friday night and saturday night", sent on a Saturday, Saturday follows Friday."""
    if before is None or not (day.weekday and day.rolls and before.weekday) or before.date <= day.date:
        return day
    return day._replace(date=day.date + timedelta(days=7), rolls=False)


def between(first: DayMention, last: DayMention) -> list[DayMention]:
    """Return all days from one to another; a range of weekdays runs forward."""
    length = (last.date - first.date).days
    if first.weekday and last.weekday:
        length %= 7
    if not 0 < length <= 31:
        return [first, last]
    return [
        first._replace(date=first.date + timedelta(days=step), rolls=first.rolls and not step)
        for step in range(length + 1)
    ]


def merged(first: DayMention, second: DayMention) -> DayMention | None:
    """Merge a weekday with its date ("saturday the 10th"); None if they are two days or disagree."""
    if first.weekday == second.weekday:
        return None
    weekday, dated = (first, second) if first.weekday else (second, first)
    if dated.implied or weekday.date.weekday() != dated.date.weekday():
        return None
    return dated._replace(written=f"{first.written} {second.written}")


def disagree(first: DayMention, second: DayMention) -> bool:
    """Return whether weekday and date disagree: "friday the 10th", but the 10th is a Saturday."""
    weekday, dated = (first, second) if first.weekday else (second, first)
    is_dated = bool(re.search(r"\d", dated.written)) and not re.search(r"\d", weekday.written)
    return weekday.weekday and is_dated and weekday.date.weekday() != dated.date.weekday()


def _spoken(now: LocalMoment) -> date:
    """Return the day that people call today: until 0400 it is still the previous day."""
    return now.today if now.minute >= _AWAKE else now.operational


def _relative(word: str, now: LocalMoment, night: Shift) -> DayMention:
    match word:
        case "tomorrow":
            return DayMention(now.today + timedelta(days=1), word)
        case "tonight":
            return DayMention(_spoken(now), word, implied=night)
        case _:
            return DayMention(now.today, word)


def _weekday(words: str, now: LocalMoment) -> DayMention:
    index = _BY_NAME[words.rsplit(maxsplit=1)[-1]]
    ahead = (index - _spoken(now).weekday()) % 7
    day = DayMention(_spoken(now) + timedelta(days=ahead), words, rolls=not ahead, weekday=True)
    return next_week(day, now) if words.startswith("next ") else day


def _weekend(words: str, now: LocalMoment, whole: Shift) -> list[DayMention]:
    saturday = now.operational + timedelta(days=5 - now.operational.weekday())
    if "next " in words:
        saturday += timedelta(days=7)
    implied = whole if re.match(r"all|the whole|whole|entire", words) else None
    days = [DayMention(saturday + timedelta(days=step), words, weekday=True, implied=implied) for step in (0, 1)]
    return [day for day in days if day.date >= now.operational]


def _nights(words: str, now: LocalMoment, night: Shift) -> list[DayMention]:
    """Return the nights of "the next two nights", starting tonight."""
    steps = range(_number(words.split()[-2]))
    return [DayMention(_spoken(now) + timedelta(days=step), words, implied=night) for step in steps]


def _ahead(words: str, now: LocalMoment, night: Shift) -> DayMention:
    count, _, _, day = words.split()
    base = _weekday(day, now) if day in _BY_NAME else _relative(day, now, night)
    return DayMention(base.date + timedelta(weeks=_number(count)), words)


def _number(word: str) -> int:
    return int(word) if word.isdigit() else _NUMBERS[word]


def _monthday(day: int, today: date) -> date:
    """Return the next date with this day of the month, including today."""
    for step in range(12):
        month = today.month - 1 + step
        try:
            found = date(today.year + month // 12, month % 12 + 1, day)
        except ValueError:
            continue
        if found >= today:
            return found
    raise ValueError(day)


def _dated(kind: str, words: str, today: date) -> date:
    numbers: Sequence[int] = [int(number) for number in re.findall(r"\d+", words)]
    if kind == "slashed":
        month, day = numbers[:2] if numbers[0] <= 12 else (numbers[1], numbers[0])
        year = numbers[2] if len(numbers) == 3 else None
    else:
        month = next(i for i, name in enumerate(_MONTHS, 1) if re.search(rf"\b{name}", words))
        day, year = numbers[0], numbers[1] if len(numbers) == 2 else None
    if year is not None:
        return date(year % 100 + 2000, month, day)
    this_year = date(today.year, month, day)
    return this_year if today - this_year < timedelta(days=180) else date(today.year + 1, month, day)
