"""Numbers in words, as people dictate them: "six thirty p m", "the twenty fourth", "eighteen hundred"."""

from __future__ import annotations

import re

_UNITS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_TEENS = (
    "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
    "nineteen",
)  # fmt: skip
_TENS = {
    "twenty": 20, "thirty": 30, "forty": 40, "fourty": 40, "fifty": 50, "sixty": 60, "seventy": 70,
    "eighty": 80, "ninety": 90,
}  # fmt: skip
_ORDINAL_UNITS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
_ORDINAL_TEENS = (
    "tenth", "eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth",
    "eighteenth", "nineteenth",
)  # fmt: skip

_CARDINALS = {word: number for number, word in enumerate((*_UNITS, *_TEENS), 1)}
_ORDINALS = {
    **{word: number for number, word in enumerate((*_ORDINAL_UNITS, *_ORDINAL_TEENS), 1)},
    "twentieth": 20,
    "thirtieth": 30,
}
_HOURS = "|".join((*_UNITS, *_TEENS[:3]))
_COUNTED = (
    r"(?! (?:of|people|members?|crews?|calls?|drivers?|emts?|hours?|minutes?|mins|days?|weeks?|nights?|more|point"
    r"|time|squads?|other|another|guys|folks|inches|dollars|bucks|years?)\b)"
)
_UNIT = "|".join(_UNITS)
_TEN = "|".join(_TENS)
_HOUR = rf"(?:{_HOURS}|1[0-2]|0?[1-9])"
_HALF = r" ?(?:a\.? ?m\b\.?|p\.? ?m\b\.?|in the (?:morning|afternoon|evening)|at night|o'? ?clock)"
_DATED = (
    r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|mon|tues?|wed|thu(?:rs?)?|fri|sat|sun|jan(?:uary)?"
    r"|feb(?:ruary)?|march|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?"
    r"|dec(?:ember)?)"
)
_NO_DAY = (
    r"(?! (?:half|part|crew|shift|one|time|thing|two|three|call|due|ones|hour|person|rider|squad|aid"
    r"|rig)\b)"
)

HOUR_RULES: tuple[tuple[str, str], ...] = tuple(
    pair
    for hour, word in enumerate(_HOURS.split("|"), 1)
    for pair in (
        (rf"\b(from|until|till?|at|between) {word}\b{_COUNTED}", rf"\g<1> {hour}"),
        (
            r"\b(\d[\d:]* ?(?:[ap]m?)?|noon|midnight)( to | till? | until | thru | through | ?- "
            rf"?){word}\b{_COUNTED}",
            rf"\g<1>\g<2>{hour}",
        ),
        (rf"\b{word} (?=(?:to|till?|until|-) (?:\d|noon|midnight|{_HOURS}\b))", f"{hour} "),
    )
)
"""Hours in words next to a preposition or another time, with their digits."""


def spelled_out(text: str) -> str:
    """Replace number words by digits if they are times, days of a month or squads."""
    for pattern, written in _RULES:
        text = pattern.sub(written, text)
    return text


def _number(word: str) -> int:
    """Return the value of a number word or of digits."""
    if word.isdigit():
        return int(word)
    first, _, second = word.replace("-", " ").partition(" ")
    if second:
        return _TENS[first] + _CARDINALS[second]
    return _CARDINALS.get(first) or _TENS[first]


def _ordinal(found: re.Match[str]) -> str:
    """Replace "twenty-fourth" by "24th"; the suffix is always "th"."""
    ten, unit = found["ten"], found["unit"]
    return f"{(_TENS[ten] if ten else 0) + _ORDINALS[unit]}th"


def _clock(found: re.Match[str]) -> str:
    minute = found["minute"]
    return f"{_number(found['hour'])}{f':{_number(minute):02d}' if minute else ''}{found['half'] or ''}"


def _military(found: re.Match[str]) -> str:
    ten, unit = found["ten"], found["unit"]
    hour = (_TENS[ten] if ten else 0) + (_CARDINALS[unit] if unit else 0)
    minute = _number(found["minute"]) if found["minute"] else 0
    return f"{hour:02d}{minute:02d}" if hour <= 24 else found.group()


_SMALL_ORDINALS = "|".join(_ORDINAL_UNITS)
_LARGE_ORDINALS = "|".join(word for word in _ORDINALS if word not in _ORDINAL_UNITS)
_RULES = tuple(
    (re.compile(pattern), written)
    for pattern, written in (
        (rf"\b(?P<ten>twenty|thirty)[- ](?P<unit>{_SMALL_ORDINALS})\b", _ordinal),
        (rf"\b(?P<ten>)(?P<unit>{_LARGE_ORDINALS})\b", _ordinal),
        (rf"(?<=\bthe )(?P<ten>)(?P<unit>{_SMALL_ORDINALS})(?= of {_DATED}\b)", _ordinal),
        (
            r"(?:(?<=day the )|(?<=on the )|(?<=for the )|(?<=off the ))(?P<ten>)"
            rf"(?P<unit>{_SMALL_ORDINALS})\b{_NO_DAY}",
            _ordinal,
        ),
        (
            rf"\b(?P<month>{_DATED}) (?P<unit>{_SMALL_ORDINALS})\b{_NO_DAY}",
            lambda found: f"{found['month']} {_ORDINALS[found['unit']]}th",
        ),
        (
            rf"\b(?:oh?|zero) (?P<ten>)(?P<unit>{_UNIT})(?: hundred(?: hours)?|(?= (?:thirty)\b))(?: "
            r"(?P<minute>thirty))?\b",
            _military,
        ),
        (
            rf"\b(?P<ten>twenty)?[- ]?(?P<unit>(?:{_UNIT}|{'|'.join(_TEENS)})\b)? ?(?P<minute>)hundred "
            r"hours\b",
            _military,
        ),
        (rf"\b(?P<ten>)(?P<unit>{'|'.join(_TEENS)}) (?:hundred|(?P<minute>thirty))\b(?: hours)?", _military),
        (
            r"\b(?P<ten>twenty)(?:[- ](?P<unit>one|two|three))? (?:hundred|(?P<minute>thirty))\b(?: "
            r"hours)?",
            _military,
        ),
        (rf"\bhalf past (?P<hour>{_HOUR})(?P<minute>)\b", lambda found: f"{_number(found['hour'])}:30"),
        (rf"\bquarter (?:past|after) (?P<hour>{_HOUR})\b", lambda found: f"{_number(found['hour'])}:15"),
        (rf"\b(?P<hour>{_HOURS})(?:[ -](?P<minute>thirty))?(?P<half>{_HALF})", _clock),
        (rf"\b(?P<hour>{_HOURS}) (?P<minute>thirty)(?P<half>)\b", _clock),
        (
            rf"\b(?:{_TEN})[- ](?:{_UNIT})\b(?! (?:hours?|minutes?|years?|people|calls))",
            lambda found: str(_number(found.group())),
        ),
    )
)
