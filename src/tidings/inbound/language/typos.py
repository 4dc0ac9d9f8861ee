"""Abbreviations, typing errors and joined words, as pairs of pattern and replacement."""

from __future__ import annotations

from functools import lru_cache

from .rewrites import group

_WEEKDAY = (
    r"(?:mon(?:day)?|tue(?:s(?:day)?)?|wed(?:s|nesday)?|thu(?:rs?(?:day)?)?|fri(?:day)?|sat(?:urday)?"
    r"|sun(?:day)?)"
)
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_MONTHS = (
    "jan feb mar apr may jun jul aug sep sept oct nov dec january february march april june july august "
    "september october november december"
)
_NO_MONTH = "".join(f"(?<!{month} )" for month in _MONTHS.split())
_SOON = rf"(?:{_WEEKDAY}|today|tomorrow|tonight)"
_NUMBER = r"\d{1,2}(?:st|nd|rd|th)?\b(?![:/]| ?[ap]m?\b| ?- ?\d| to \d|\d)"

SHORT = group("short", WEEKDAY=_WEEKDAY, MONTH=_MONTH, NO_MONTH=_NO_MONTH, SOON=_SOON, NUMBER=_NUMBER)

_HOURS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_COUNTED = (
    r"(?! (?:of|people|members?|crews?|calls?|drivers?|emts?|hours?|minutes?|mins|days?|weeks?|nights?"
    r"|more|point"
    r"|time|squads?|other|another|guys|folks|inches|dollars|bucks|years?)\b)"
)
_TWELVE = r"(1[0-2]|[1-9])((?::\d\d)?)"
_LATE = r"([5-9]|1[01])((?::\d\d)?)"
_EARLY = r"(12|[1-4])((?::\d\d)?)"
_CLOCKED = r"(?:(?<=to )|(?<=til )|(?<=till )|(?<=until )|(?<=from )|(?<=at )|(?<=-)|(?<=and )|(?<=between ))"
_WORD_HOURS: tuple[tuple[str, str], ...] = tuple(
    pair
    for hour, word in enumerate(_HOURS, 1)
    for pair in (
        (rf"\b(from|until|till?|at|between) {word}\b{_COUNTED}", rf"\g<1> {hour}"),
        (
            r"\b(\d[\d:]* ?(?:[ap]m?)?|noon|midnight)( to | till? | until | thru | through | ?- "
            rf"?){word}\b{_COUNTED}",
            rf"\g<1>\g<2>{hour}",
        ),
        (rf"\b{word} (?=(?:to|till?|until|-) (?:\d|noon|midnight|{'|'.join(_HOURS)}\b))", f"{hour} "),
    )
)
WORDED = _WORD_HOURS + group("worded", CLOCKED=_CLOCKED, TWELVE=_TWELVE, EARLY=_EARLY, LATE=_LATE, WEEKDAY=_WEEKDAY)

_MINE = r"(?:we|i) (?:had |have |just |already |once )*"
SAID = group("said", MINE=_MINE, MONTH=_MONTH, SOON=_SOON)

_LONG = frozenset({
    "tonight", "tomorrow", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday",
    "weekend", "morning", "afternoon", "evening", "midnight", "coverage", "covered", "covering", "uncovered",
    "unstaffed", "uncrewed", "available", "unavailable", "service", "schedule", "calendar", "nobody",
    "anybody", "somebody", "staffed", "staffing", "january", "february", "september", "october", "november",
    "december", "overnight", "confirmed", "night", "cover", "shift", "remove", "cancel", "delete", "unable",
    "crews", "scratch", "august", "today", "squad", "please", "everybody", "unfortunately",
})  # fmt: skip
_SURE = 5
"""Shorter words are not corrected: one letter makes another word ("crew", "crow")."""
_OTHERS = frozenset({
    "services", "serviced", "scheduler", "scheduled", "schedules", "coveted", "stuffed", "stuffing",
    "remote", "sundae", "sundry", "clover", "cower", "coven", "covet", "covert", "comer", "covey", "shirt",
    "swift", "shifty", "shifted", "shaft", "removed", "remover", "cancer", "cancelled", "canceled",
    "cancels", "deleted", "pleased", "pleases", "pleasure", "enable", "crewe", "crews", "cress", "chews",
    "crows", "craws", "toady", "squat", "squid", "squads", "nights", "knight", "nightly", "covers",
    "shifts", "removes", "deletes", "stable", "delegate", "plead", "pleats", "coder", "corer", "cooler",
    "coffer", "cavern", "usable", "tidy", "crewed", "crewd", "screws", "undoable", "squish", "shit",
    "shift", "august", "todays", "eight", "might", "nigh", "squared", "sunny", "money", "holiday", "parade",
    "covid", "coved", "coyer", "clovers", "removal", "canoe", "canal", "candle", "camel", "chancel",
    "unstable", "release", "leases", "relate",
})  # fmt: skip


_SHORT = frozenset({"crew", "take", "have", "need", "from"})
_NAMES = frozenset({"ned", "tak", "crews", "need", "needs", "taken", "takes", "haven", "creed", "farm"})


@lru_cache(maxsize=4_096)
def correct_typo(word: str) -> str:
    """Return the known word that differs by one typing error, or the word itself."""
    if len(word) <= _SURE and word not in _NAMES and word not in _SHORT:
        short = next((known for known in sorted(_SHORT) if _is_short_slip(word, known)), None)
        if short is not None:
            return short
    if len(word) < _SURE or word in _LONG or word in _OTHERS or word.removesuffix("s") in _LONG:
        return word
    return next((known for known in sorted(_LONG) if word[0] == known[0] and _is_slip(word, known)), word)


def _is_short_slip(word: str, known: str) -> bool:
    """Return whether letters are swapped or doubled, or a vowel is missing, which makes no other word."""
    if sorted(word) == sorted(known):
        return _is_slip(word, known) and word[0] == known[0]
    if len(word) == len(known) + 1:
        return any(word == known[:i] + known[i] + known[i:] for i in range(len(known)))
    return any(word == known[:i] + known[i + 1 :] for i in range(1, len(known)) if known[i] in "aeiou")


def _is_slip(word: str, known: str) -> bool:
    """Return whether one letter is extra, missing or wrong, or two are swapped."""
    if abs(len(word) - len(known)) > 1:
        return False
    same = next((i for i, pair in enumerate(zip(word, known, strict=False)) if pair[0] != pair[1]), len(known))
    rest, wanted = word[same:], known[same:]
    swapped = wanted[1:2] + wanted[:1] + wanted[2:]
    return rest[1:] == wanted or rest == wanted[1:] or rest[1:] == wanted[1:] or rest == swapped
