"""Removes greetings, wishes, thanks and excuses.

"If it helps, 42 will cover" is not a condition, and "merry christmas" is not a date.
"""

from __future__ import annotations

import re

from .pattern_literals import required_literals
from .rewrites import group

_HOLIDAY = (
    r"(?:christmas|xmas|x-mas|new years?|new year|thanksgiving|turkey day|easter|hanukkah|halloween|holidays?"
    r"|4th of july|fourth(?: of july)?|valentines?(?: day)?|memorial day|labor day|mother'?s day"
    r"|father'?s day"
    r"|st\.? patrick'?s day|veterans day|juneteenth|(?:mon|tues|wednes|thurs|fri|satur|sun)day|weekend"
    r"|birthday)"
)
_YOU = r"(?:you|nobody|anybody|anyone|somebody|someone|everybody|everyone|you all|y'all|people)"
_SAYS = r"(?:we|us|our|no|not|crews?|nobody|coverage|need|\d+)"
_END = rf"(?=[,.;:!?\n)]|$| - | but\b| and\b| so\b| {_SAYS}\b)"
_REST = rf"(?:(?! {_SAYS}\b)[^,.;:!?\n]){{0,60}}?"

_ALL = (
    r"(?:all|everybody|everyone|folks|team|guys|gang|y'all|squads|chief|friends|again|dears|ladies|fellas"
    r"|people|sir|captain)"
)
_EMPTY = group("empty", ALL=_ALL, END=_END, HOLIDAY=_HOLIDAY, REST=_REST, YOU=_YOU)
_RULES = tuple((re.compile(pattern), put, required_literals(pattern)) for pattern, put in group("polite") + _EMPTY)


def without_courtesies(text: str) -> str:
    """Return the text without polite phrases."""
    for pattern, put, pieces in _RULES:
        if not pieces or any(map(text.__contains__, pieces)):
            text = pattern.sub(put, text)
    return text
