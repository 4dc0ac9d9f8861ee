"""Who wants what, when: sentences become statements, each with one thing that is wanted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

from ..words import Action
from .moods import Mood, is_idle, mood
from .pieces import Act, Clock, Day, Form, Mark, Moment, Piece, Slot, Span, Squad, Word
from .scanner import Scan
from .shift_words import Shift
from .spans import Item, is_mark, join

_OBJECTS = frozenset(
    {
        "cover",
        "covering",
        "staff",
        "take",
        "do",
        "run",
        "make",
        "add",
        "remove",
        "removing",
        "delete",
        "scratch",
        "handle",
        "work",
        "help",
    }
)
_AUXILIARIES = frozenset({"can", "will", "able", "happy"})
_SUBJECTLESS = frozenset(
    {"down", "out", "out of service", "available", "in service", "unavailable", "not available"}
)
_REASONS = frozenset({"so", "because", "since", "as", "therefore"})
_HELPS = ("cover", "covering", "take", "taking", "pick up", "picking up", "handle", "grab", "do", "run")
_SEPARATORS = (Mark.COMMA, Mark.AND, Mark.THEN)


class Pair(NamedTuple):
    """Days and the hours that were said for them; either may be empty."""

    days: tuple[Day, ...]
    slots: tuple[Slot, ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """One thing that is wanted, as it was said."""

    act: Act | None
    squads: tuple[str, ...] = ()
    is_ours: bool = False
    is_theirs: bool = False
    is_foreign: bool = False  # of a unit that is none of these squads
    is_mine: bool = False  # somebody speaks of himself
    pairs: tuple[Pair, ...] = ()
    noise: int = 0
    is_idle: bool = False  # tells of the past, or of a search

    @property
    def days(self) -> tuple[Day, ...]:
        return tuple(day for pair in self.pairs for day in pair.days)

    @property
    def has_hours(self) -> bool:
        return any(pair.slots for pair in self.pairs) or any(day.implied for day in self.days)

    @property
    def is_placed(self) -> bool:
        """Says when."""
        return any(pair.days or pair.slots for pair in self.pairs)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence as far as it was understood."""

    statements: tuple[Statement, ...]
    mood: Mood
    mentions_crew: bool
    lone: tuple[Clock, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(slots=True)
class _Cut:
    """A part of a sentence around one act."""

    act: Act | None
    items: list[Item] = field(default_factory=list)


def sentences(text: str, scan: Scan, now: Moment) -> list[Sentence]:
    """The sentences of a text, with what each says."""
    found: list[Sentence] = []
    begin = 0
    pieces: list[Piece] = []
    denies = any(isinstance(piece, Act) and piece.action is Action.NO_CREW for piece, _ in scan.pieces)
    ends: list[tuple[Piece | None, int]] = [*scan.pieces, (None, len(text))]
    for piece, place in ends:
        if piece is not None and not is_mark(piece, Mark.STOP, Mark.ASKED):
            pieces.append(piece)
            continue
        if pieces:
            said = text[begin:place].strip()
            found.append(_sentence(pieces, said, now, asks=is_mark(piece, Mark.ASKED), denies=denies))
        begin, pieces = place + 1, []
    return found


def _sentence(pieces: Sequence[Piece], said: str, now: Moment, *, asks: bool, denies: bool) -> Sentence:
    joined = join(pieces, now)
    items = _crew_as_act(joined.items) if denies else list(joined.items)
    mentions = any((isinstance(p, Act) and p.is_plain) or is_mark(p, Mark.CREW) for p in pieces)
    if any(clock.form is Form.EXACT for clock in joined.lone):
        items = [item._replace(implied=None) if isinstance(item, Day) else item for item in items]
        items = [item for item in items if not isinstance(item, Shift)]
    statements = tuple(
        replace(made, is_idle=_is_idle(said, cut.act)) for cut in _cuts(items) for made in [_statement(cut)]
    )
    return Sentence(
        statements, mood(said, ends_asking=asks), mentions, tuple(joined.lone), tuple(joined.warnings)
    )


def _is_idle(said: str, act: Act | None) -> bool:
    return is_idle(said, act.written if act else said) or bool(act and act.is_denied)


def with_more(statement: Statement, other: Statement) -> Statement:
    """A statement, and a fragment that goes on with it."""
    return replace(
        statement,
        squads=statement.squads or other.squads,
        is_ours=statement.is_ours or other.is_ours,
        pairs=_paired([*_flat(statement.pairs), *_flat(other.pairs)]),
        noise=statement.noise + other.noise,
    )


def _flat(pairs: Sequence[Pair]) -> list[Day | Slot]:
    return [item for pair in pairs for item in (*pair.days, *pair.slots)]


def _crew_as_act(items: Sequence[Item]) -> list[Item]:
    """ "No crew in the morning, crew in the afternoon": the second one says that there is one."""
    changed = list(items)
    for i, item in enumerate(items):
        before = items[i - 1] if i else None
        opens = before is None or is_mark(before, *_SEPARATORS, Mark.PAUSE) or isinstance(before, Squad)
        after = items[i + 1] if i + 1 < len(items) else None
        if isinstance(after, Word) and not after.is_filler:
            continue
        if is_mark(item, Mark.CREW) and getattr(item, "written", "") == "crew" and opens:
            changed[i] = Act(Action.ADD, True, "crew")
    return changed


def _cuts(items: list[Item]) -> list[_Cut]:
    """One part per act; the last comma, "and" or "then" between two acts divides them."""
    places = _acts(items)
    if len(places) < 2:
        act = items[places[0]] if places else None
        return [_Cut(act if isinstance(act, Act) else None, items)]
    bounds = [
        0,
        *(_border(items, one, two) for one, two in pairwise(places)),
        len(items),
    ]
    cuts = []
    for place, low, high in zip(places, bounds, bounds[1:], strict=False):
        act = items[place]
        assert isinstance(act, Act)
        cuts.append(_Cut(act, items[low:high]))
    return cuts


def _border(items: Sequence[Item], one: int, two: int) -> int:
    for place in range(two - 1, one, -1):
        if is_mark(items[place], *_SEPARATORS):
            return place
    while two - 1 > one and (
        isinstance(items[two - 1], Squad | Word) or is_mark(items[two - 1], Mark.US, Mark.THEY, Mark.ME)
    ):
        two -= 1
    return two


def _acts(items: list[Item]) -> list[int]:
    """Places of the acts that count: no echo of the one before, and none with an object that does not fit."""
    places: list[int] = []
    for place, item in enumerate(items):
        if not isinstance(item, Act) or not _fits(items, place):
            continue
        if places and _is_echo(items, places[-1], place):
            continue
        if _is_denied(items, place, places[-1] if places else None):
            items[place] = item._replace(is_denied=True)
        places.append(place)
    return places


def _is_denied(items: Sequence[Item], place: int, before: int | None) -> bool:
    """ "Do not add us", "cancel the no crew": two that turn each other round are left to a person."""
    for item in reversed(items[:place]):
        if is_mark(item, *_SEPARATORS, Mark.PAUSE) or (isinstance(item, Word) and item.text in _REASONS):
            break
        if is_mark(item, Mark.NOT):
            return True
    first, second = items[before] if before is not None else None, items[place]
    takes_back = isinstance(first, Act) and first.action is Action.REMOVE
    says_none = isinstance(second, Act) and second.action is Action.NO_CREW
    between = items[before + 1 : place] if before is not None else []
    return (
        takes_back
        and says_none
        and all(_is_filler(i) or is_mark(i, Mark.US) or isinstance(i, Squad) for i in between)
    )


def _is_echo(items: Sequence[Item], one: int, two: int) -> bool:
    """ "Nobody can ride", "need tonight covered": the second act belongs to the first."""
    first, between = items[one], items[one + 1 : two]
    assert isinstance(first, Act)
    if any(is_mark(item, *_SEPARATORS) for item in between):
        return False
    if first.absorbs:
        return True
    if first.action is Action.REMOVE and getattr(items[two], "is_terse", False):
        return True
    has_content = any(isinstance(i, Day | Span | Shift | Squad) or is_mark(i, Mark.US) for i in between)
    second = items[two]
    is_same = isinstance(second, Act) and first.action is second.action
    return (first.action is Action.NO_CREW or is_same) and not has_content


def _fits(items: Sequence[Item], place: int) -> bool:
    """ "Cover friday", not "cover the cost"; "42 is down", not "the radio is down"."""
    act = items[place]
    assert isinstance(act, Act)
    after = items[place + 1 :]
    if act.written.split()[-1] in _OBJECTS or (act.action is not Action.NO_CREW and not act.is_plain):
        if _has_object(after):
            return False
    elif act.absorbs:
        cover = next((i for i, item in enumerate(after) if _written(item).startswith("cover")), None)
        if cover is not None and _has_object(after[cover + 1 :]):
            return False
    if act.written == "available" and not any(
        isinstance(i, Squad) or is_mark(i, Mark.US) for i in items[:place]
    ):
        return False
    if act.written in _SUBJECTLESS:
        is_told = act.is_plain and any(isinstance(i, Squad) or is_mark(i, Mark.US) for i in items[:place])
        return _has_subject(items[:place]) and (is_told or not _has_object(after))
    is_offer = act.action is Action.ADD and (act.takes_object or not act.is_plain)
    if is_offer and act.written.split()[0] in _AUXILIARIES:
        before = next((i for i in reversed(items[:place]) if not _is_filler(i)), None)
        return not isinstance(before, Word)
    return True


def _has_object(after: Sequence[Item]) -> bool:
    """Is the next thing that counts a strange word? Whoever it is done for may stand between."""
    rest = (item for item in after if not _is_filler(item) and not isinstance(item, Squad))
    thing = next((item for item in rest if not is_mark(item, Mark.US, Mark.THEY, Mark.ME)), None)
    return isinstance(thing, Word)


def _is_filler(item: Item) -> bool:
    return isinstance(item, Word) and item.is_filler


def _written(item: Item) -> str:
    return getattr(item, "written", "")


def _has_subject(before: Sequence[Item]) -> bool:
    """Down, out of service: a squad is, or nobody is named. A thing that is down is no crew."""
    for item in reversed(before):
        if isinstance(item, Word) and not item.is_filler:
            return False
        if isinstance(item, Squad):
            return not item.is_place
        if is_mark(item, Mark.ME):
            return False
        if is_mark(item, Mark.US, Mark.THEY, Mark.COMMA, Mark.PAUSE, Mark.THEN, Mark.AND, Mark.CREW):
            return True
    return True


def _statement(cut: _Cut) -> Statement:
    items = _without_helped(cut)
    named = [item for item in items if isinstance(item, Squad)]
    return Statement(
        act=cut.act,
        squads=tuple(dict.fromkeys(squad.name for squad in named)),
        is_ours=any(is_mark(item, Mark.US) for item in items),
        is_theirs=any(is_mark(item, Mark.THEY) for item in items),
        is_foreign=any(is_mark(item, Mark.FOREIGN) for item in items),
        is_mine=any(is_mark(item, Mark.ME) for item in items),
        pairs=_paired([item for item in items if isinstance(item, Day | Span | Shift)]),
        noise=sum(isinstance(item, Word) and not item.is_filler for item in items),
    )


def _without_helped(cut: _Cut) -> list[Item]:
    """ "54 will take 42's friday": the crew is 54's; whose shift it was does not matter."""
    act = cut.act
    if (
        act is None
        or act.action is not Action.ADD
        or not act.written.endswith(_HELPS)
        or act not in cut.items
    ):
        return cut.items
    place = cut.items.index(act)
    before, after = cut.items[:place], cut.items[place:]
    if not any(isinstance(item, Squad) or is_mark(item, Mark.US) for item in before):
        return cut.items
    return [*before, *(item for item in after if not isinstance(item, Squad))]


def _paired(items: Sequence[Day | Slot]) -> tuple[Pair, ...]:
    """Days with their hours: "fri 18-00 and sat 06-12", "18-06 on fri and sat", "fri 06-09 and 15-18"."""
    runs: list[tuple[bool, list[Day | Slot]]] = []
    for item in items:
        is_day = isinstance(item, Day)
        if not runs or runs[-1][0] != is_day:
            runs.append((is_day, []))
        runs[-1][1].append(item)
    pairs: list[Pair] = []
    while runs:
        (is_day, first), *rest = runs
        second = rest[0][1] if rest else []
        days, slots = (first, second) if is_day else (second, first)
        pairs.append(
            Pair(
                tuple(d for d in days if isinstance(d, Day)),
                tuple(s for s in slots if not isinstance(s, Day)),
            )
        )
        runs = rest[1:]
    if len(pairs) > 1 and not pairs[-1].days:  # "the night shift on saturday, 2000-0200"
        last = pairs.pop()
        pairs[-1] = Pair(pairs[-1].days, (*pairs[-1].slots, *last.slots))
    return tuple(pairs)
