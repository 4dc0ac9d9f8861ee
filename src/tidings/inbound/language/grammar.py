"""Reads one message: what is wanted of the calendar, as far as it was said. Pure.

read(text, setting) -> Heard
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from ...model.time import moment
from ..words import Action, Request
from .pieces import Act, Clock, Day, Form, Moment, Span
from .scanner import Vocabulary, scan
from .shift_words import Shift
from .spelling import spell
from .statements import Pair, Sentence, Statement, sentences, with_more
from .timetable import Window, plan

_DAY_STARTS = 6
_PURE = 2
"""So many strange words may stand in a fragment, or with a loose word such as "nobody"."""


_PERSONAL = (" ride", " come", " be there", " make it", " work")


class Setting(NamedTuple):
    """Where and when something is said, and by whose squad."""

    now: Moment
    squad: str | None
    squads: tuple[str, ...]
    shifts: Mapping[str, Shift]


class Evidence(NamedTuple):
    """What speaks for a request."""

    is_placed: bool  # a day or hours
    is_plain: bool  # names the matter
    is_owned: bool  # a squad, or "we"
    is_hedged: bool  # asked, past, perhaps, or about other things
    mentions: bool  # has words of the matter at all


@dataclass(frozen=True, slots=True)
class Heard:
    """What a message says. `fragment` is what it says without saying what is wanted."""

    requests: tuple[Request, ...]
    warnings: tuple[str, ...]
    fragment: tuple[Window, ...]
    fragment_squads: tuple[str, ...]
    is_ours: bool
    has_hours: bool  # some, understood or not
    clocks: tuple[Clock, ...]  # single times, which only a question gives a meaning
    evidence: Evidence
    noise: int
    days: tuple[str, ...]


def moment_of(at: int, zone: str) -> Moment:
    """The hour on the clock of a zone."""
    there = moment(at).astimezone(ZoneInfo(zone))
    today = there.date()
    operational = today if there.hour >= _DAY_STARTS else today - timedelta(days=1)
    return Moment(today, there.hour * 60 + there.minute, operational)


def read(text: str, setting: Setting) -> Heard:
    """Everything a message says, by the rules of this package."""
    plain = spell(text)
    scanned = scan(plain, setting.now, Vocabulary(setting.squads, setting.shifts))
    parts = sentences(plain, scanned, setting.now)
    statements = _inherited(_merged(parts))
    counted = [s for s in statements if _counts(s)]
    warnings = [*scanned.warnings, *(w for part in parts for w in part.warnings)]
    requests: list[Request] = []
    for statement in counted:
        requests.extend(_requests(statement, setting, warnings))
    loose = [s for part in parts for s in part.statements]
    plans = [plan(pair, setting.now) for s in loose for pair in s.pairs]
    if not counted:
        warnings.extend(warning for planned in plans for warning in planned.warnings)
    fragment = [window for planned in plans for window in planned.windows if any(window)]
    return Heard(
        requests=without_echo(requests),
        warnings=tuple(dict.fromkeys(warnings)),
        fragment=tuple(dict.fromkeys(fragment)),
        fragment_squads=tuple(dict.fromkeys(name for s in loose for name in s.squads)),
        is_ours=any(s.is_ours for s in loose),
        has_hours=any(s.has_hours for s in loose),
        clocks=(*(clock for part in parts for clock in part.lone), *_bare_ends(loose)),
        evidence=_evidence(parts, counted),
        noise=sum(s.noise for s in loose),
        days=_days(requests, loose),
    )


def _days(requests: Sequence[Request], loose: Sequence[Statement]) -> tuple[str, ...]:
    """The days that are wanted; of a fragment, those that it names."""
    wanted = {request.date for request in requests if request.date}
    return tuple(sorted(wanted or {f"{day.date:%Y%m%d}" for s in loose for day in s.days}))


def _bare_ends(statements: Sequence[Statement]) -> Iterator[Clock]:
    """ "Till 7": which of the two, only a start that is known elsewhere can tell."""
    for span in (
        slot for s in statements for pair in s.pairs for slot in pair.slots if isinstance(slot, Span)
    ):
        if span.start is None and span.end is not None and span.end.form is Form.BARE:
            yield span.end


def _merged(parts: Sequence[Sentence]) -> list[Statement]:
    """The statements that want something, with the fragments that go on with them."""
    merged: list[Statement] = []
    waiting: list[Statement] = []
    asked: Statement | None = None
    for part in parts:
        for statement in part.statements:
            if _asks_nothing(part, statement):
                asked = statement if part.mood.is_question and statement.days else asked
            elif statement.act is None:
                if not statement.is_placed or statement.noise >= _PURE:
                    continue
                if merged:
                    merged[-1] = with_more(merged[-1], statement)
                else:
                    waiting.append(statement)
            else:
                merged.append(_led(statement, waiting, asked))
                waiting, asked = [], None
    return merged


def _asks_nothing(part: Sentence, statement: Statement) -> bool:
    is_plain = statement.act is not None and statement.act.is_plain
    return part.mood.asks_nothing or statement.is_idle or (part.mood.about_things and not is_plain)


def _led(statement: Statement, waiting: Sequence[Statement], asked: Statement | None) -> Statement:
    """With what was said before it: a fragment, or the question that it answers."""
    if statement.days:
        return statement
    for before in waiting:
        statement = with_more(statement, before)
    if (
        asked
        and not statement.is_placed
        and (_is_owned(statement) or _is_owned(asked) or _takes_back(statement))
    ):
        squads = statement.squads or asked.squads
        return replace(
            statement, pairs=asked.pairs, squads=squads, is_ours=statement.is_ours or asked.is_ours
        )
    return statement


def _inherited(statements: Sequence[Statement]) -> list[Statement]:
    """Turned acts get their meaning, and missing days and squads come from the statement before, or after."""
    turned = [s for s in (_turned(s, statements[:i]) for i, s in enumerate(statements)) if s]
    kept = _shared(_echoed(turned)) or turned[:1]
    squads: tuple[str, ...] = ()
    result: list[Statement] = []
    for i, statement in enumerate(kept):
        if not statement.squads and not statement.is_ours:
            statement = replace(statement, squads=squads)  # noqa: PLW2901
        if not statement.days:
            near = next((s.days for s in [*reversed(result), *kept[i + 1 :]] if s.days), ())
            statement = replace(statement, pairs=_with_days(statement.pairs, near))  # noqa: PLW2901
        squads = statement.squads or squads
        result.append(statement)
    return result


def _echoed(statements: Sequence[Statement]) -> list[Statement]:
    """ "35 needs coverage tonight, 54 has it": the second speaks of the same hours."""
    result: list[Statement] = []
    for statement in statements:
        echoes = statement.act is not None and statement.act.echoes and not statement.is_placed
        before = next(
            (s for s in reversed(result) if s.act and s.act.action is Action.NO_CREW and s.is_placed), None
        )
        if echoes and before and _is_owned(statement) and statement.squads != before.squads:
            result.append(replace(statement, pairs=before.pairs))
        else:
            result.append(statement)
    return result


def _shared(statements: Sequence[Statement]) -> list[Statement]:
    """Those with a time; one without gives its owner to one that wants the same ("full crew, we are in")."""
    result = [s for s in statements if s.is_placed]
    for giver in (s for s in statements if not s.is_placed and s.act and _is_owned(s)):
        for i, taker in enumerate(result):
            same = giver.act and taker.act and giver.act.action is taker.act.action
            if same and not _is_owned(taker) and not taker.is_theirs:
                result[i] = replace(taker, squads=giver.squads, is_ours=giver.is_ours)
            elif same and giver.squads and taker.squads and giver.act and giver.act.is_plain:
                result[i] = replace(taker, squads=tuple(dict.fromkeys((*giver.squads, *taker.squads))))
    return result


def _is_owned(statement: Statement) -> bool:
    return bool(statement.squads) or statement.is_ours


def _takes_back(statement: Statement) -> bool:
    return statement.act is not None and statement.act.action is Action.REMOVE


def _turned(statement: Statement, before: Sequence[Statement]) -> Statement | None:
    act = statement.act
    if act is None or not act.turns:
        return statement
    added = any(s.act and s.act.action is Action.ADD for s in before)
    if not added and not act.written.startswith("can"):
        return None
    return replace(statement, act=Act(Action.NO_CREW, added, act.written))


def _with_days(pairs: Sequence[Pair], days: Sequence[Day]) -> tuple[Pair, ...]:
    return tuple(Pair(tuple(days), pair.slots) for pair in pairs) or (Pair(tuple(days), ()),)


def _counts(statement: Statement) -> bool:
    """Is it meant? A plain phrase needs a time, a loose one somebody's name as well."""
    act = statement.act
    if act is None or act.action is None or statement.is_foreign:
        return False
    if not statement.is_placed:
        return (
            act.action is not Action.ADD
            and _is_owned(statement)
            and not statement.noise
            and _is_bare(statement)
        )
    if statement.is_theirs and not statement.is_ours and not statement.squads:
        return False  # somebody's, but whose?
    if act.is_plain:
        return not (statement.is_mine and act.takes_object and not statement.squads)
    if act.is_terse and statement.noise:
        return False
    if _is_owned(statement):
        return not (act.action is Action.ADD and statement.is_mine and not statement.squads)
    return (
        act.action is not Action.ADD
        and not statement.is_mine
        and statement.noise < _PURE
        and not _is_ones(act)
    )


def _is_bare(statement: Statement) -> bool:
    """ "We have no crew", "remove our shift": all but the time, and nothing else."""
    return statement.act is not None and (statement.act.is_plain or statement.act.action is Action.REMOVE)


def _is_ones(act: Act) -> bool:
    """ "Can not ride tomorrow" is said by one person of himself."""
    return act.written.endswith(_PERSONAL) and "anybody" not in act.written


def _requests(statement: Statement, setting: Setting, warnings: list[str]) -> list[Request]:
    action = statement.act.action if statement.act else None
    squads: Sequence[str | None] = statement.squads or (setting.squad,)
    requests: list[Request] = []
    for pair in statement.pairs:
        planned = plan(pair, setting.now)
        warnings.extend(planned.warnings)
        for squad in squads:
            requests.extend(
                Request(
                    action, squad, f"{window.date:%Y%m%d}" if window.date else None, window.start, window.end
                )
                for window in planned.windows
            )
    return requests


def without_echo(requests: Sequence[Request]) -> tuple[Request, ...]:
    """Once each; and none that says less than another of the same kind."""
    unique = list(dict.fromkeys(requests))
    return tuple(r for r in unique if not any(_says_less(r, other) for other in unique))


def _says_less(less: Request, more: Request) -> bool:
    pairs = list(zip(less, more, strict=True))
    return less != more and all(one is None or one == other for one, other in pairs)


def _evidence(parts: Sequence[Sentence], counted: Sequence[Statement]) -> Evidence:
    every = [s for part in parts for s in part.statements]
    acts = [s for s in every if s.act]
    return Evidence(
        is_placed=any(s.is_placed for s in counted or every),
        is_plain=any(s.act and s.act.is_plain for s in counted or acts),
        is_owned=any(s.squads or s.is_ours for s in counted or every),
        is_hedged=any(part.mood.asks_nothing or any(s.is_idle for s in part.statements) for part in parts),
        mentions=bool(acts) or any(part.mentions_crew for part in parts),
    )
