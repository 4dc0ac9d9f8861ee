"""Parses sentences into statements: who wants what, and when; one act each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import pairwise
from typing import NamedTuple

from ..domain import ShiftAction
from .clauses import Clause, crew_as_act, split_clauses
from .day_phrases import merged
from .moods import Mood, asks_others, is_aside, is_condition, is_idle, is_of_things, mood, stays
from .scanner import ScannedText
from .shift_words import Shift
from .spans import Item, is_mark, join
from .subjects import has_strange_subject
from .tables import words
from .tokens import (
    Act,
    ClockFormat,
    ClockSpan,
    ClockTime,
    DayMention,
    HoursMention,
    LocalMoment,
    Mark,
    SquadMention,
    TextToken,
    Word,
)

_THEREFORE = frozenset({"so", "anyway", "anyways", "therefore", "thus", "hence", "meanwhile"})
_REASONS = frozenset({"because", "since", "due", "as"})
_CLAUSES = frozenset({"so", "because", "since", "which", "therefore", "while", "until"})
_SORRY = frozenset({"sorry", "actually", "wait", "oops", "whoops", "edit"})
_PARTS = frozenset({"half", "part", "portion", "rest", "remainder", "end", "beginning", "tail", "middle"})
_DEEDS = ("cover", "take", "work", "ride", "do", "run", "stand in", "sit in", "fill in", "step in", "relieve")
_EDITS = words("edit")


class DayHours(NamedTuple):
    """Days with their hours; either may be empty."""

    days: tuple[DayMention, ...]
    slots: tuple[HoursMention, ...]


@dataclass(frozen=True, slots=True)
class ShiftStatement:
    """One act with its squads, days and hours, as stated."""

    act: Act | None
    squads: tuple[str, ...] = ()
    is_ours: bool = False
    is_theirs: bool = False
    is_foreign: bool = False  # about a unit that is not a squad
    is_mine: bool = False  # one person speaks about themselves
    pairs: tuple[DayHours, ...] = ()
    noise: int = 0  # unrelated words
    is_idle: bool = False  # about the past or a search
    is_tangled: bool = False  # squads and days alternate, so ownership is unclear

    @property
    def days(self) -> tuple[DayMention, ...]:
        return tuple(day for pair in self.pairs for day in pair.days)

    @property
    def has_hours(self) -> bool:
        return any(pair.slots for pair in self.pairs) or any(day.implied for day in self.days)

    @property
    def is_placed(self) -> bool:
        """Whether it has a day or hours."""
        return any(pair.days or pair.slots for pair in self.pairs)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A parsed sentence."""

    statements: tuple[ShiftStatement, ...]
    mood: Mood
    mentions_crew: bool
    corrects: bool = False  # begins with "I mean" or the like
    leads: bool = False  # the next sentence is a conclusion from it
    stays: bool = False  # only says that something stays the same
    lone: tuple[ClockTime, ...] = ()
    warnings: tuple[str, ...] = ()


def sentences(text: str, scan: ScannedText, now: LocalMoment) -> list[Sentence]:
    found: list[Sentence] = []
    begin = 0
    pieces: list[TextToken] = []
    denies = any(isinstance(piece, Act) and piece.action is ShiftAction.NO_CREW for piece, _ in scan.pieces)
    ends: list[tuple[TextToken | None, int]] = [*scan.pieces, (None, len(text))]
    for i, (piece, place) in enumerate(ends):
        is_end = piece is None or is_mark(piece, Mark.STOP, Mark.ASKED)
        goes_on = not is_end and not _starts_anew(text[begin:place], ends, i)
        if goes_on and piece is not None:
            pieces.append(piece)
            continue
        if pieces:
            said = text[begin:place].strip()
            made = _sentence(pieces, said, now, asks=is_mark(piece, Mark.ASKED), denies=denies)
            found.append(replace(made, leads=_leads(piece, made, said)))
        begin, pieces = (place + 1, []) if is_end else (place, [piece] if piece else [])
    return found


def _leads(end: TextToken | None, sentence: Sentence, said: str) -> bool:
    """Return whether it ends with "so", or with "but" about the same people, and is not a condition."""
    if is_condition(said):
        return False
    concludes = isinstance(end, Word) and end.text in _THEREFORE
    return concludes or (is_mark(end, Mark.THEN) and any(s.is_ours for s in sentence.statements))


def _starts_anew(said: str, pieces: Sequence[tuple[TextToken | None, int]], i: int) -> bool:
    """Return whether the request begins here, after thanks, a doubt or a question without a period."""
    piece, after = pieces[i][0], pieces[i + 1][0] if i + 1 < len(pieces) else None
    if is_mark(piece, Mark.US) or isinstance(piece, SquadMention):
        says = isinstance(after, Act) and after.action is ShiftAction.NO_CREW and after.is_plain
        return says and asks_others(said)
    if is_mark(piece, Mark.PAUSE, Mark.DASH):
        return not isinstance(after, ClockTime) and mood(said.strip(), ends_asking=False).is_told
    if is_mark(piece, Mark.THEN) or (isinstance(piece, Word) and piece.text in _THEREFORE):
        return is_aside(said.strip(), concludes=not is_mark(piece, Mark.THEN))
    return False


def _sentence(pieces: Sequence[TextToken], said: str, now: LocalMoment, *, asks: bool, denies: bool) -> Sentence:
    joined = join(pieces, now)
    items = crew_as_act(joined.items) if denies else list(joined.items)
    mentions = any((isinstance(p, Act) and p.is_plain) or is_mark(p, Mark.CREW) for p in pieces)
    if any(clock.form is ClockFormat.EXACT for clock in joined.lone) or _is_part(items):
        items = [item._replace(implied=None) if isinstance(item, DayMention) else item for item in items]
        items = [item for item in items if not isinstance(item, Shift)]
    statements = tuple(
        replace(made, is_idle=_is_idle(said, cut.act), is_foreign=_is_foreign(made, said))
        for cut in split_clauses(items)
        for made in [_statement(cut)]
    )
    return Sentence(
        statements=statements,
        mood=mood(said, ends_asking=asks),
        mentions_crew=mentions,
        corrects=_corrects(pieces),
        stays=stays(said) and not any(statement.act for statement in statements),
        lone=tuple(joined.lone),
        warnings=tuple(joined.warnings),
    )


def _corrects(pieces: Sequence[TextToken]) -> bool:
    """Return whether a sentence is a correction: "sorry, 1800-2300", "no, tuesday night"."""
    first, second = pieces[0], pieces[1] if len(pieces) > 1 else None
    said = first.text if isinstance(first, Word) else ""
    return is_mark(first, Mark.MEANT) or said in _SORRY or (said == "no" and is_mark(second, Mark.COMMA))


def _is_part(items: Sequence[Item]) -> bool:
    """Return whether a part of a shift is named without hours: "the first half of tonight"."""
    if any(isinstance(item, ClockSpan) for item in items):
        return False
    told = [i for i in items if not (isinstance(i, Word) and i.is_filler)]
    return any(
        isinstance(one, Word) and one.text in _PARTS and isinstance(two, DayMention | Shift)
        for one, two in pairwise(told)
    )


def _is_foreign(made: ShiftStatement, said: str) -> bool:
    """Return whether the statement is about another unit, or about a name that is not a squad."""
    if made.is_foreign or made.act is None or made.squads or made.is_ours or made.is_theirs:
        return made.is_foreign
    return has_strange_subject(said, made.act.written)


def _is_idle(said: str, act: Act | None) -> bool:
    if act is None:
        return is_idle(said, said)
    return act.is_denied or is_idle(said, act.written) or (not act.is_plain and is_of_things(said, act.written))


def with_more(statement: ShiftStatement, other: ShiftStatement) -> ShiftStatement:
    """Merge a fragment into the statement that it continues."""
    first, second = _flat(statement.pairs), _flat(other.pairs)
    if len(first) == 1 and second and isinstance(first[0], DayMention) and isinstance(second[0], DayMention):
        one = merged(first[0], second[0])  # "monday. 1/4 day shift"
        if one is not None:
            first, second = [one], second[1:]
    return replace(
        statement,
        squads=statement.squads or other.squads,
        is_ours=statement.is_ours or other.is_ours,
        pairs=paired([*first, *second]),
        noise=statement.noise + other.noise,
    )


def _flat(pairs: Sequence[DayHours]) -> list[DayMention | HoursMention]:
    return [item for pair in pairs for item in (*pair.days, *pair.slots)]


def _statement(cut: Clause) -> ShiftStatement:
    items = _to_the_point(_without_called(_without_helped(cut)), cut.act)
    named = [item for item in items if isinstance(item, SquadMention)]
    return ShiftStatement(
        act=cut.act,
        squads=tuple(dict.fromkeys(squad.name for squad in named)),
        is_ours=any(is_mark(item, Mark.US) for item in items),
        is_theirs=any(is_mark(item, Mark.THEY) for item in items),
        is_foreign=any(is_mark(item, Mark.FOREIGN) for item in items),
        is_mine=_is_mine(items, cut.act),
        pairs=paired([item for item in items if isinstance(item, DayMention | ClockSpan | Shift)]),
        noise=_noise(items, cut.act),
        is_tangled=_is_tangled(items),
    )


def _to_the_point(items: list[Item], act: Act | None) -> list[Item]:
    """Drop the days and squads of unrelated clauses if the clause of the act has its own."""
    segments = _segments(items)
    core = next((segment for segment in segments if any(item is act for item in segment)), None)
    if act is None or core is None:
        return items
    dates = {item.date for item in core if isinstance(item, DayMention)}
    has_hours = any(isinstance(item, ClockSpan | Shift) for item in core)
    has_us = any(is_mark(item, Mark.US) for item in core) and not any(isinstance(item, SquadMention) for item in core)
    has_owner = any(isinstance(item, SquadMention) or is_mark(item, Mark.US) for item in core)
    kept: list[Item] = []
    for segment in segments:
        named = {item.date for item in segment if isinstance(item, DayMention)}
        is_tale = segment is not core and (_strange(segment) or _is_heading(segment, named & dates))
        spent: tuple[type, ...] = ()
        if segment is not core and has_us and not _strange(segment):  # "friends at 54, we will ..."
            spent += (SquadMention,)
        if segment is not core and _strange(segment):
            spent += (SquadMention,) if has_owner else ()
            spent += (ClockSpan, Shift) if has_hours else ()
        if is_tale and dates:
            spent += (DayMention, ClockSpan, Shift) if named else (DayMention,)
        kept.extend(item for item in segment if not isinstance(item, spent))
    return kept


def _segments(items: Sequence[Item]) -> list[list[Item]]:
    """Split a sentence into clauses, each with the comma or word that ends it."""
    segments: list[list[Item]] = [[]]
    for item in items:
        if isinstance(item, Word) and item.text in _CLAUSES:
            segments.append([])
        segments[-1].append(item)
        if is_mark(item, Mark.COMMA, Mark.THEN, Mark.PAUSE):
            segments.append([])
    return segments


def _is_heading(segment: Sequence[Item], shared: set[date]) -> bool:
    """Return whether a clause is a heading: "Status for this weekend: saturday"."""
    return is_mark(segment[-1] if segment else None, Mark.PAUSE) and bool(shared or _strange(segment))


def _strange(items: Sequence[Item]) -> int:
    return sum(isinstance(i, Word) and not i.is_filler and i.text not in _PARTS for i in items)


def _noise(items: Sequence[Item], act: Act | None) -> int:
    """Count unrelated words, except in another clause ("no crew, both drivers are sick")."""
    place = items.index(act) if act in items else 0
    end = len(items)
    if act is not None:
        is_end = (is_mark(i, Mark.COMMA) or (isinstance(i, Word) and i.text in _REASONS) for i in items[place:])
        end = next((place + i for i, ends in enumerate(is_end) if ends), end)
    return _strange(items[:end])


def _is_mine(items: Sequence[Item], act: Act | None) -> bool:
    """Return whether the person who acts is "I": the nearest before the act, otherwise anyone named."""
    place = items.index(act) if act in items else len(items)
    after = next((i for i in items[place + 1 :] if not (isinstance(i, Word) and i.is_filler)), None)
    if isinstance(after, SquadMention) or is_mark(after, Mark.US):  # "put us on"
        return False
    for item in reversed(items[:place]):
        if isinstance(item, SquadMention) or is_mark(item, Mark.US, Mark.THEY, Mark.ME):
            return is_mark(item, Mark.ME)
    return any(is_mark(item, Mark.ME) for item in items) and not any(is_mark(i, Mark.US) for i in items)


def _without_helped(cut: Clause) -> list[Item]:
    """Drop the squad that is helped: in "54 will take 42's friday" the crew is 54's."""
    act = cut.act
    if act is None or act.action is not ShiftAction.ADD or act.written.split()[0] in _EDITS or act not in cut.items:
        return cut.items
    place = cut.items.index(act)
    before, after = cut.items[:place], cut.items[place:]
    is_theirs = (_is_for(after) and act.written.endswith(("ing", "over", *_DEEDS))) or _helps(act, after[1:])
    if not any(isinstance(item, SquadMention) or is_mark(item, Mark.US) for item in before) and not is_theirs:
        return cut.items
    return [*before, *(item for item in after if not isinstance(item, SquadMention))]


def _without_called(items: Sequence[Item]) -> list[Item]:
    """Drop a squad that is only addressed: "hey 54 we can take friday"."""
    called = {
        place
        for place, (one, two) in enumerate(pairwise(items))
        if isinstance(one, SquadMention) and is_mark(two, Mark.US) and getattr(two, "written", "") == "we"
    }
    return [item for place, item in enumerate(items) if place not in called]


def _helps(act: Act, after: Sequence[Item]) -> bool:
    """Return whether the following squad is helped: "covering 54 tuesday night"."""
    return act.written == "covering" and bool(after) and isinstance(after[0], SquadMention)


def _is_tangled(items: Sequence[Item]) -> bool:
    """Return whether squads and days alternate: "43 on wednesday, 54 on thursday"."""
    kinds = [isinstance(item, SquadMention) for item in items if isinstance(item, SquadMention | DayMention)]
    turns = sum(one != two for one, two in pairwise(kinds))
    return turns > 2


def _is_for(items: Sequence[Item]) -> bool:
    """Return whether a squad follows "for": "covering saturday night for 54"."""
    return any(
        isinstance(two, SquadMention) and isinstance(one, Word) and one.text == "for" for one, two in pairwise(items)
    )


def paired(items: Sequence[DayMention | HoursMention]) -> tuple[DayHours, ...]:
    """Pair days with hours: "fri 18-00 and sat 06-12", "18-06 on fri and sat", "fri 06-09 and 15-18"."""
    runs: list[tuple[bool, list[DayMention | HoursMention]]] = []
    for item in items:
        is_day = isinstance(item, DayMention)
        if not runs or runs[-1][0] != is_day:
            runs.append((is_day, []))
        if not any(
            isinstance(d, DayMention) and isinstance(item, DayMention) and d.date == item.date for d in runs[-1][1]
        ):
            runs[-1][1].append(item)
    pairs: list[DayHours] = []
    while runs:
        (is_day, first), *rest = runs
        second = rest[0][1] if rest else []
        days, slots = (first, second) if is_day else (second, first)
        pairs.append(
            DayHours(
                tuple(d for d in days if isinstance(d, DayMention)),
                tuple(s for s in slots if not isinstance(s, DayMention)),
            )
        )
        runs = rest[1:]
    if len(pairs) > 1 and not pairs[-1].days:  # "the night shift on saturday, 2000-0200"
        last = pairs.pop()
        pairs[-1] = DayHours(pairs[-1].days, (*pairs[-1].slots, *last.slots))
    return tuple(pairs)
