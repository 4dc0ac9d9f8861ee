"""Splits a sentence into clauses with one act each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ..domain import ShiftAction
from .shift_words import Shift
from .spans import Item, is_mark
from .tables import words
from .tokens import Act, ClockSpan, DayMention, Mark, SquadMention, Word

_OBJECTS = words("object_verb")
_THROUGH = words("before_hours")
_NONE = ("nobody", "no people", "zero people", "no drivers", "no members", "no volunteers")
_NOBODY_IS = words("of_nobody")
_AUXILIARIES = frozenset({"can", "will", "able", "happy"})
_SUBJECTLESS = frozenset({"down", "out", "out of service", "available", "in service", "unavailable", "not available"})
_REASONS = frozenset({"so", "because", "since", "as", "therefore"})
_SEPARATORS = (Mark.COMMA, Mark.AND, Mark.THEN)


@dataclass(slots=True)
class Clause:
    """A clause around one act."""

    act: Act | None
    items: list[Item] = field(default_factory=list)


def crew_as_act(items: Sequence[Item]) -> list[Item]:
    """Turn a bare "crew" into an act: "no crew in the morning, crew in the afternoon"."""
    changed = list(items)
    for i, item in enumerate(items):
        before = items[i - 1] if i else None
        opens = before is None or is_mark(before, *_SEPARATORS, Mark.PAUSE) or isinstance(before, SquadMention)
        after = items[i + 1] if i + 1 < len(items) else None
        opens = opens or (isinstance(before, Shift) and (after is None or is_mark(after, *_SEPARATORS)))
        if isinstance(after, Word) and not after.is_filler:
            continue
        if is_mark(item, Mark.CREW) and getattr(item, "written", "") == "crew" and opens:
            changed[i] = Act(ShiftAction.ADD, True, "crew")
    return changed


def split_clauses(items: list[Item]) -> list[Clause]:
    """Split at the last comma, "and" or "then" between two acts."""
    places = _acts(items)
    if len(places) < 2:
        act = items[places[0]] if places else None
        return [Clause(act if isinstance(act, Act) else None, items)]
    bounds = [0, *(_border(items, one, two) for one, two in pairwise(places)), len(items)]
    parts = []
    for place, low, high in zip(places, bounds, bounds[1:], strict=False):
        act = items[place]
        assert isinstance(act, Act)
        parts.append(Clause(act, items[low:high]))
    return parts


def _border(items: Sequence[Item], one: int, two: int) -> int:
    for place in range(two - 1, one, -1):
        if is_mark(items[place], *_SEPARATORS):
            return place
    while two - 1 > one and (
        isinstance(items[two - 1], SquadMention | Word) or is_mark(items[two - 1], Mark.US, Mark.THEY, Mark.ME)
    ):
        two -= 1
    return two


def _acts(items: list[Item]) -> list[int]:
    """Return the places of the acts that count, without echoes and acts with an unrelated object."""
    places: list[int] = []
    for place, item in enumerate(items):
        if not isinstance(item, Act) or not _fits(items, place):
            continue
        if places and _is_echo(items, places[-1], place):
            if _says_more(items[places[-1]], item):
                places[-1] = place
            continue
        if _is_denied(items, place, places[-1] if places else None):
            items[place] = item._replace(is_denied=True)
        places.append(place)
    return places


def _says_more(first: Item, second: Act) -> bool:
    """Return whether the echo is the explicit act: "nobody signed up, so no crew"."""
    return isinstance(first, Act) and not first.is_plain and not first.absorbs and second.is_plain


def _is_denied(items: Sequence[Item], place: int, before: int | None) -> bool:
    """Return whether the act is negated: "do not add us", "cancel the no crew"."""
    for item in reversed(items[:place]):
        if is_mark(item, *_SEPARATORS, Mark.PAUSE) or (isinstance(item, Word) and item.text in _REASONS):
            break
        if is_mark(item, Mark.NOT):
            return True
    first, second = items[before] if before is not None else None, items[place]
    takes_back = isinstance(first, Act) and first.action is ShiftAction.REMOVE
    says_none = isinstance(second, Act) and second.action is ShiftAction.NO_CREW
    between = items[before + 1 : place] if before is not None else []
    return (
        takes_back
        and says_none
        and all(_is_filler(i) or is_mark(i, Mark.US) or isinstance(i, SquadMention) for i in between)
    )


def _is_echo(items: Sequence[Item], one: int, two: int) -> bool:
    """Return whether the second act belongs to the first: "nobody can ride", "need tonight covered"."""
    first, between = items[one], items[one + 1 : two]
    assert isinstance(first, Act)
    if first.written == "neither" and not any(is_mark(item, Mark.THEN) for item in between):
        return True
    if any(is_mark(item, *_SEPARATORS) for item in between):
        return False
    if first.absorbs:
        return True
    if first.action is ShiftAction.REMOVE and getattr(items[two], "is_terse", False):
        return True
    has_content = any(
        isinstance(i, DayMention | ClockSpan | Shift | SquadMention) or is_mark(i, Mark.US) for i in between
    )
    second = items[two]
    is_same = isinstance(second, Act) and first.action is second.action
    return (first.action is ShiftAction.NO_CREW or is_same) and not has_content


def _fits(items: Sequence[Item], place: int) -> bool:
    """Accept "cover friday" and "42 is down", but not "cover the cost" and "the radio is down"."""
    act = items[place]
    assert isinstance(act, Act)
    after = items[place + 1 :]
    if act.written.startswith(_NONE) and not _is_of_crew(after):
        return False
    if act.written.split()[-1] in _OBJECTS or (act.action is not ShiftAction.NO_CREW and not act.is_plain):
        if _has_object(after):
            return False
    elif act.absorbs:
        cover = next((i for i, item in enumerate(after) if getattr(item, "written", "").startswith("cover")), None)
        if cover is not None and _has_object(after[cover + 1 :]):
            return False
    if act.written == "available" and not any(
        isinstance(i, SquadMention) or is_mark(i, Mark.US) for i in items[:place]
    ):
        return False
    if act.written in _SUBJECTLESS:
        is_told = act.is_plain and any(isinstance(i, SquadMention) or is_mark(i, Mark.US) for i in items[:place])
        return _has_subject(items[:place]) and (is_told or not _has_object(after))
    is_offer = act.action is ShiftAction.ADD and (act.takes_object or not act.is_plain)
    if is_offer and act.written.split()[0] in _AUXILIARIES:
        before = next((i for i in reversed(items[:place]) if not _is_filler(i)), None)
        return not isinstance(before, Word)
    return True


def _is_of_crew(after: Sequence[Item]) -> bool:
    """Accept "nobody can ride", but not "nobody likes mondays"."""
    first = next((item for item in after if not _is_filler(item)), None)
    return not isinstance(first, Word) or first.text in _NOBODY_IS


def _has_object(after: Sequence[Item]) -> bool:
    """Return whether an unrelated word follows, skipping squads and pronouns."""
    words = (item for item in after if not _is_filler(item) and not isinstance(item, SquadMention))
    rest = (item for item in words if not (isinstance(item, Word) and item.text in _THROUGH))
    thing = next((item for item in rest if not is_mark(item, Mark.US, Mark.THEY, Mark.ME)), None)
    return isinstance(thing, Word)


def _is_filler(item: Item) -> bool:
    return isinstance(item, Word) and item.is_filler


def _has_subject(before: Sequence[Item]) -> bool:
    """Return whether the subject of "down" or "out of service" is a squad or missing, not a thing."""
    for item in reversed(before):
        if isinstance(item, Word) and not item.is_filler:
            return False
        if isinstance(item, SquadMention):
            return not item.is_place
        if is_mark(item, Mark.ME):
            return False
        if is_mark(item, Mark.US, Mark.THEY, Mark.COMMA, Mark.PAUSE, Mark.THEN, Mark.AND, Mark.CREW):
            return True
    return True
