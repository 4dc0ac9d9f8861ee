"""Puts clock times and days together: ranges, open ends, "not this", "I mean that".

Works on the pieces of one sentence and gives back fewer: no clock and no preposition is left over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from . import days
from .pieces import Clock, Day, Form, Mark, Marked, Moment, Piece, Span, Word
from .shift_words import Shift

Item = Piece | Span

_RANGES = frozenset({Mark.TO, Mark.DASH, Mark.UNTIL})
_VERBS = frozenset({"can", "could", "will", "would", "do", "does", "did", "should"})
_PAUSE = Marked(Mark.PAUSE, "-")
_SPENT = frozenset({Mark.TO, Mark.UNTIL, Mark.FROM, Mark.AT, Mark.BETWEEN, Mark.NEXT_WEEK})


class Joined(NamedTuple):
    """A sentence with its spans; `lone` are times that belong to no span."""

    items: Sequence[Item]
    lone: Sequence[Clock]
    warnings: Sequence[str]


def join(pieces: Sequence[Piece], now: Moment) -> Joined:
    """Ranges first, then days, then what was taken back."""
    if any(is_mark(piece, Mark.NEXT_WEEK) for piece in pieces):
        pieces = [days.next_week(p, now) if isinstance(p, Day) and p.weekday else p for p in pieces]
    lone: list[Clock] = []
    warnings: list[str] = []
    items = _dates(_clocks(pieces, lone), warnings)
    items = [_PAUSE if is_mark(item, Mark.DASH) else item for item in items]
    items = [item for item in items if not (isinstance(item, Marked) and item.mark in _SPENT)]
    return Joined(_replaced(_denied(items)), lone, warnings)


def is_mark(item: Item | None, *marks: Mark) -> bool:
    """Is it one of these small words?"""
    return isinstance(item, Marked) and item.mark in marks


def _clocks(pieces: Sequence[Piece], lone: list[Clock]) -> list[Item]:
    items: list[Item] = []
    i = 0
    while i < len(pieces):
        piece = pieces[i]
        if is_mark(piece, Mark.AFTER_THAT):
            items.append(Span(None, None, follows=True))
        elif isinstance(piece, Clock):
            taken, found = _span_at(pieces, i)
            items.extend(found)
            lone.extend([] if found else [piece])
            i += taken
            continue
        else:
            items.append(piece)
        i += 1
    return items


def _span_at(pieces: Sequence[Piece], i: int) -> tuple[int, list[Item]]:
    """The span that begins with the clock at `i`: how many pieces it takes, and what becomes of them."""
    start = pieces[i]
    assert isinstance(start, Clock)
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
        if isinstance(end, Clock):
            has_day = middle is not None or isinstance(_at(pieces, i - 1), Day)
            if until is None and has_day and not is_mark(mark, Mark.DASH) and _names_end(pieces, k + 1):
                until = _day(pieces, k + 1)
                k += 1
            return k + 1 - i, [*([middle] if middle else []), Span(start, end, until)]
    after = _at(pieces, i + 1)
    if isinstance(after, Clock) and (
        (start.digits and after.digits) or (_is_halved(start) and _is_halved(after))
    ):
        return 2, [Span(start, after)]
    if _follows(pieces, i, Mark.FROM):
        return 1, [Span(start, None)]
    if _follows(pieces, i, Mark.UNTIL):
        return 1, [Span(None, start)]
    return 1, []


def _is_halved(clock: Clock) -> bool:
    """ "6a 12p": as good as with a dash."""
    return clock.form is Form.EXACT and clock.written.rstrip("m").endswith(("a", "p"))


def _names_end(pieces: Sequence[Piece], k: int) -> bool:
    """A day after the end belongs to it, unless its own hours follow."""
    return _day(pieces, k) is not None and not isinstance(_at(pieces, k + 1), Clock | Shift)


def _follows(pieces: Sequence[Piece], i: int, mark: Mark) -> bool:
    """Is that the preposition of the clock at `i`? Days and small words may stand between."""
    while i > 0:
        i -= 1
        piece = pieces[i]
        if isinstance(piece, Day) or (isinstance(piece, Word) and piece.is_filler) or is_mark(piece, Mark.AT):
            continue
        return is_mark(piece, mark)
    return False


def _dates(pieces: Sequence[Item], warnings: list[str]) -> list[Item]:
    """Ranges of days, and weekdays with their date."""
    items: list[Item] = []
    i = 0
    while i < len(pieces):
        piece = pieces[i]
        taken = 1
        if isinstance(piece, Day):
            taken, found = _days_at(pieces, i, warnings)
            items.extend([] if _is_bound(pieces, i) else found)
        else:
            items.append(piece)
        i += taken
    return items


def _is_bound(pieces: Sequence[Item], i: int) -> bool:
    """ "Out of service until friday" is not on friday; until when, and from when, has to be asked."""
    return is_mark(_at(pieces, i - 1), Mark.UNTIL) and not isinstance(_at(pieces, i + 1), Span | Shift)


def _days_at(pieces: Sequence[Item], i: int, warnings: list[str]) -> tuple[int, list[Item]]:
    first = pieces[i]
    assert isinstance(first, Day)
    j = i + 1
    shift = _at(pieces, j) if isinstance(_at(pieces, j), Shift) else None
    k = j + (shift is not None)
    last = _day(pieces, k + 1)
    if (
        is_mark(_at(pieces, k), *_RANGES)
        and last is not None
        and (shift is None or _at(pieces, k + 2) == shift)
    ):
        return k + 2 - i, [*days.between(first, last)]
    if shift is not None:
        dated = _day(pieces, k + is_mark(_at(pieces, k), Mark.COMMA))
        one = days.merged(first, dated) if dated is not None else None
        if one is not None:  # "friday night, the 30th"
            return k + 1 + is_mark(_at(pieces, k), Mark.COMMA) - i, [one, shift]
    second = _day(pieces, j + is_mark(_at(pieces, j), Mark.COMMA))
    if second is None:
        return 1, [first]
    if days.disagree(first, second):
        warnings.append(
            f"{second.written!r} is not a {first.date:%A}"
            if first.weekday
            else f"{first.written!r} is not {second.written}"
        )
        return 2 + is_mark(_at(pieces, j), Mark.COMMA), []
    one = days.merged(first, second)
    has_comma = is_mark(_at(pieces, j), Mark.COMMA)
    if one is None or (has_comma and not first.weekday):
        return 1, [first]
    return 2 + has_comma, [one]


def _denied(items: Sequence[Item]) -> list[Item]:
    """Without what stands after "not": "not saturday, sunday" is sunday."""
    kept: list[Item] = []
    i = 0
    while i < len(items):
        if is_mark(items[i], Mark.NOT) and not _is_verb(_at(items, i - 1)):
            j = i + 1
            while isinstance(_at(items, j), Word) and getattr(items[j], "is_filler", False):
                j += 1
            if isinstance(_at(items, j), Day | Shift | Span):
                j += 1
                while isinstance(items[j - 1], Day) and isinstance(_at(items, j), Shift | Span):
                    j += 1
                i = j
                continue
        kept.append(items[i])
        i += 1
    return kept


def _is_verb(item: Item | None) -> bool:
    """ "We can not go saturday" speaks of saturday."""
    return isinstance(item, Word) and item.text in _VERBS


def _replaced(items: Sequence[Item]) -> list[Item]:
    """Without what "I mean" takes back: a day for a day, hours for hours."""
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
    """What is named first after "I mean": days, hours, or both."""
    kinds: list[tuple[type, ...]] = []
    for item in items:
        if is_mark(item, Mark.MEANT) or (kinds and is_mark(item, Mark.COMMA, Mark.AND, Mark.THEN)):
            break
        kind: tuple[type, ...] = (Day,) if isinstance(item, Day) else (Shift, Span)
        if isinstance(item, Day | Shift | Span) and kind not in kinds:
            kinds.append(kind)
    return kinds


def _day(pieces: Sequence[Item], i: int) -> Day | None:
    piece = _at(pieces, i)
    return piece if isinstance(piece, Day) else None


def _at(pieces: Sequence[Item], i: int) -> Item | None:
    return pieces[i] if 0 <= i < len(pieces) else None
