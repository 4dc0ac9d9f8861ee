"""Holidays that people name instead of a date: "thanksgiving night", "xmas eve", "the 4th of july"."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, timedelta


def _nth(month: int, weekday: int, nth: int) -> Callable[[int], date]:
    """Return the rule for the nth weekday of a month; 0 is the last one."""

    def on(year: int) -> date:
        first = date(year, month, 1) if nth else date(year, month + 1, 1) - timedelta(days=7)
        return first + timedelta(days=(weekday - first.weekday()) % 7 + 7 * max(nth - 1, 0))

    return on


def _easter(year: int) -> date:
    """Return Easter Sunday in the Gregorian calendar."""
    golden, century, rest = year % 19, year // 100, year % 100
    moon = (19 * golden + century - century // 4 - (century - (century + 8) // 25 + 1) // 3 + 15) % 30
    shift = (32 + 2 * (century % 4) + 2 * (rest // 4) - moon - rest % 4) % 7
    late = (golden + 11 * moon + 22 * shift) // 451
    month, day = divmod(moon + shift - 7 * late + 114, 31)
    return date(year, month, day + 1)


def _fixed(month: int, day: int) -> Callable[[int], date]:
    return lambda year: date(year, month, day)


_ALL: Mapping[str, Callable[[int], date]] = {
    r"mlk(?: day)?|martin luther king day": _nth(1, 0, 3),
    r"president'?s?'? day": _nth(2, 0, 3),
    r"good friday": lambda year: _easter(year) - timedelta(days=2),
    r"easter monday": lambda year: _easter(year) + timedelta(days=1),
    r"easter(?: sunday)?": _easter,
    r"mother'?s?'? day": _nth(5, 6, 2),
    r"memorial day": _nth(5, 0, 0),
    r"father'?s?'? day": _nth(6, 6, 3),
    r"labor day|labour day": _nth(9, 0, 1),
    r"columbus day|indigenous peoples'? day": _nth(10, 0, 2),
    r"black friday": lambda year: _nth(11, 3, 4)(year) + timedelta(days=1),
    r"thanksgiving(?: day(?! shift))?|turkey day": _nth(11, 3, 4),
    r"new year'?s?'? eve|nye": _fixed(12, 31),
    r"new year'?s?'?(?: day)?": _fixed(1, 1),
    r"(?:st\.? )?valentine'?s?(?: day)?": _fixed(2, 14),
    r"(?:st\.?|saint) pat(?:rick|ty)?'?s?(?: day(?! shift))?|st\.? paddy'?s?(?: day(?! shift))?": _fixed(3, 17),
    r"juneteenth": _fixed(6, 19),
    r"(?:the )?(?:4th|fourth) of july|independence day": _fixed(7, 4),
    r"halloween": _fixed(10, 31),
    r"veteran'?s?'? day": _fixed(11, 11),
    r"christmas eve|xmas eve|x-mas eve": _fixed(12, 24),
    r"christmas(?: day(?! shift))?|xmas(?: day(?! shift))?|x-mas(?: day)?": _fixed(12, 25),
    r"boxing day": _fixed(12, 26),
}
PATTERN = "|".join(_ALL)


def holiday(words: str, today: date) -> date:
    """Return the next date of a holiday, including today; raises ValueError for a holiday weekend."""
    rule = next((rule for names, rule in _ALL.items() if re.fullmatch(names, words)), None)
    if rule is None:
        raise ValueError(words)
    this_year = rule(today.year)
    return this_year if this_year >= today else rule(today.year + 1)
