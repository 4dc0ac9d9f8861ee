"""Joins clock times and days into ranges, and applies "not this" and "I mean that".

The input is the tokens of one sentence; the output has no single clock times and no prepositions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from . import day_phrases
from .shift_words import Shift
from .tokens import ClockFormat, ClockSpan, ClockTime, DayMention, LocalMoment, Mark, Marked, TextToken, Word

Item = TextToken | ClockSpan

_RANGES = frozenset({Mark.TO, Mark.DASH, Mark.UNTIL})
_VERBS = frozenset({"can", "could", "will", "would", "do", "does", "did", "should"})
_PAUSE = Marked(Mark.PAUSE, "-")
_SPENT = frozenset({Mark.TO, Mark.UNTIL, Mark.FROM, Mark.AT, Mark.BETWEEN, Mark.NEXT_WEEK})


class JoinedSpans(NamedTuple):
    """A sentence with its spans; `lone` are times outside of spans."""

    items: Sequence[Item]
    lone: Sequence[ClockTime]
    warnings: Sequence[str]


def join(pieces: Sequence[TextToken], now: LocalMoment) -> JoinedSpans:
    """Join ranges, then days, then apply negations and corrections."""
    if any(is_mark(piece, Mark.NEXT_WEEK) for piece in pieces):
        pieces = [day_phrases.next_week(p, now) if isinstance(p, DayMention) and p.weekday else p for p in pieces]
    lone: list[ClockTime] = []
    warnings: list[str] = []
    items = _dates(_clocks(pieces, lone), warnings)
    items = [_PAUSE if is_mark(item, Mark.DASH) else item for item in items]
    items = [item for item in items if not (isinstance(item, Marked) and item.mark in _SPENT)]
    return JoinedSpans(_replaced(_denied(items)), lone, warnings)


def is_mark(item: Item | None, *marks: Mark) -> bool:
    return isinstance(item, Marked) and item.mark in marks


def _clocks(pieces: Sequence[TextToken], lone: list[ClockTime]) -> list[Item]:
    items: list[Item] = []
    i = 0
    while i < len(pieces):
        piece = pieces[i]
        if is_mark(piece, Mark.AFTER_THAT):
            items.append(ClockSpan(None, None, follows=True))
        elif isinstance(piece, ClockTime):
            taken, found = _span_at(pieces, i)
            items.extend(found)
            lone.extend([] if found else [piece])
            i += taken
            continue
        else:
            items.append(piece)
        i += 1
    return items


def _span_at(pieces: Sequence[TextToken], i: int) -> tuple[int, list[Item]]:
    """Parse the span that begins with the clock time at `i`; returns the number of tokens and the items."""
    start = pieces[i]
    assert isinstance(start, ClockTime)
    j = i + 1
    middle = _day(pieces, j)
    j += middle is not None
    mark = _at(pieces, j)
    if is_mark(mark, *_RANGES) or (is_mark(mark, Mark.AND) and _follows(pieces, i, Mark.BETWEEN)):
        k = j + 1
        until = _day(pieces, k)
        k += until is not None
        k += is_mark(_at(pieces, k), Mark.AT)
        end = _at(pieces, k)
        if isinstance(end, ClockTime):
            has_day = middle is not None or isinstance(_at(pieces, i - 1), DayMention)
            if until is None and has_day and not is_mark(mark, Mark.DASH) and _names_end(pieces, k + 1):
                until = _day(pieces, k + 1)
                k += 1
            return k + 1 - i, [*([middle] if middle else []), ClockSpan(start, end, until)]
    after = _at(pieces, i + 1)
    if isinstance(after, ClockTime) and ((start.digits and after.digits) or (_is_halved(start) and _is_halved(after))):
        return 2, [ClockSpan(start, after)]
    if _follows(pieces, i, Mark.FROM):
        return 1, [ClockSpan(start, None)]
    if _follows(pieces, i, Mark.UNTIL):
        return 1, [ClockSpan(None, start)]
    return 1, []


def _is_halved(clock: ClockTime) -> bool:
    """Return whether a time has "a" or "p": "6a 12p" is a range without a dash."""
    return clock.form is ClockFormat.EXACT and clock.written.rstrip("m").endswith(("a", "p"))


def _names_end(pieces: Sequence[TextToken], k: int) -> bool:
    """Return whether a day after the end time belongs to it, which is false if its own hours follow."""
    return _day(pieces, k) is not None and not isinstance(_at(pieces, k + 1), ClockTime | Shift)


def _follows(pieces: Sequence[TextToken], i: int, mark: Mark) -> bool:
    """Return whether this preposition precedes the clock time at `i`, skipping days and fillers."""
    while i > 0:
        i -= 1
        piece = pieces[i]
        if isinstance(piece, DayMention) or (isinstance(piece, Word) and piece.is_filler) or is_mark(piece, Mark.AT):
            continue
        return is_mark(piece, mark)
    return False


def _dates(pieces: Sequence[Item], warnings: list[str]) -> list[Item]:
    """Join ranges of days, and weekdays with their date."""
    items: list[Item] = []
    i = 0
    while i < len(pieces):
        piece = pieces[i]
        taken = 1
        if isinstance(piece, DayMention):
            taken, found = _days_at(pieces, i, warnings)
            items.extend([] if _is_bound(pieces, i) else found)
        else:
            items.append(piece)
        i += taken
    return items


def _is_bound(pieces: Sequence[Item], i: int) -> bool:
    """Return whether the day is an open end: "out of service until friday" is not a request for Friday."""
    return is_mark(_at(pieces, i - 1), Mark.UNTIL) and not isinstance(_at(pieces, i + 1), ClockSpan | Shift)


def _days_at(pieces: Sequence[Item], i: int, warnings: list[str]) -> tuple[int, list[Item]]:
    first = pieces[i]
    assert isinstance(first, DayMention)
    j = i + 1
    shift = _at(pieces, j) if isinstance(_at(pieces, j), Shift) else None
    k = j + (shift is not None)
    last = _day(pieces, k + 1)
    if is_mark(_at(pieces, k), *_RANGES) and last is not None and (shift is None or _at(pieces, k + 2) == shift):
        return k + 2 - i, [*day_phrases.between(first, last)]
    if shift is not None:
        dated = _day(pieces, k + is_mark(_at(pieces, k), Mark.COMMA))
        one = day_phrases.merged(first, dated) if dated is not None else None
        if one is not None:  # "friday night, the 30th"
            return k + 1 + is_mark(_at(pieces, k), Mark.COMMA) - i, [one, shift]
    second = _day(pieces, j + is_mark(_at(pieces, j), Mark.COMMA))
    if second is None:
        return 1, [first]
    if day_phrases.disagree(first, second):
        warnings.append(
            f"{second.written!r} is not a {first.date:%A}"
            if first.weekday
            else f"{first.written!r} is not {second.written}"
        )
        return 2 + is_mark(_at(pieces, j), Mark.COMMA), []
    one = day_phrases.merged(first, second)
    has_comma = is_mark(_at(pieces, j), Mark.COMMA)
    if one is None or (has_comma and not first.weekday):
        return 1, [first]
    return 2 + has_comma, [one]


def _denied(items: Sequence[Item]) -> list[Item]:
    """Remove what follows "not": "not saturday, sunday" is Sunday."""
    kept: list[Item] = []
    i = 0
    while i < len(items):
        if is_mark(items[i], Mark.NOT) and not _is_verb(_at(items, i - 1)):
            j = i + 1
            while isinstance(_at(items, j), Word) and getattr(items[j], "is_filler", False):
                j += 1
            if isinstance(_at(items, j), DayMention | Shift | ClockSpan):
                j += 1
                while isinstance(items[j - 1], DayMention) and isinstance(_at(items, j), Shift | ClockSpan):
                    j += 1
                i = j
                continue
        kept.append(items[i])
        i += 1
    return kept


def _is_verb(item: Item | None) -> bool:
    """Return whether "not" negates a verb: "we can not go saturday" is about Saturday."""
    return isinstance(item, Word) and item.text in _VERBS


def _replaced(items: Sequence[Item]) -> list[Item]:
    """Remove what "I mean" corrects: a day for a day, hours for hours."""
    kept: list[Item] = []
    for i, item in enumerate(items):
        if not is_mark(item, Mark.MEANT):
            kept.append(item)
            continue
        for kind in _kinds(items[i + 1 :]):
            place = next((p for p in range(len(kept) - 1, -1, -1) if isinstance(kept[p], kind)), None)
            if place is not None:
                del kept[place]
    return kept


def _kinds(items: Sequence[Item]) -> list[tuple[type, ...]]:
    """Return what follows "I mean" first: days, hours, or both."""
    kinds: list[tuple[type, ...]] = []
    for item in items:
        if is_mark(item, Mark.MEANT) or (kinds and is_mark(item, Mark.COMMA, Mark.AND, Mark.THEN)):
            break
        kind: tuple[type, ...] = (DayMention,) if isinstance(item, DayMention) else (Shift, ClockSpan)
        if isinstance(item, DayMention | Shift | ClockSpan) and kind not in kinds:
            kinds.append(kind)
    return kinds


def _day(pieces: Sequence[Item], i: int) -> DayMention | None:
    piece = _at(pieces, i)
    return piece if isinstance(piece, DayMention) else None


def _at(pieces: Sequence[Item], i: int) -> Item | None:
    return pieces[i] if 0 <= i < len(pieces) else None
