"""Reads one message: what is wanted of the calendar, as far as it was said. Pure.

read(text, setting) -> Heard
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from typing import NamedTuple
from zoneinfo import ZoneInfo

from ...model.time import moment
from ..domain import CalendarCommand, ShiftAction, ShiftRequest
from .normalization import normalize
from .resolution import PURE, is_owned, resolve_statements
from .scanner import ScannedText, Vocabulary, scan
from .shift_words import Shift
from .statements import Sentence, ShiftStatement, sentences
from .time_windows import ShiftWindow, resolve_windows
from .tokens import Act, ClockFormat, ClockSpan, ClockTime, LocalMoment

_DAY_STARTS = 6
_SHORT = 8  # words of a message that says no more than "no crew"
_OTHERS = re.compile(
    r"\b(?:anybody|nobody|people|crew|folks|members|drivers|enough|bodies|takers|volunteers)\b"
)
_PERSONAL = (" ride", " come", " be there", " make it", " work")


class ParserAgreement(StrEnum):
    """How well the two readings agree: this one by phrases, and the one by weight."""

    SURE = "sure"  # both find the same, clearly
    LOOSE = "loose"  # only one finds it, they differ, or hardly: to be read back
    NONE = "none"  # the one denies what the other finds


class ParserContext(NamedTuple):
    """Where and when something is said, and by whose squad."""

    now: LocalMoment
    squad: str | None
    squads: tuple[str, ...]
    shifts: Mapping[str, Shift]


class ParseEvidence(NamedTuple):
    """What speaks for a request."""

    is_placed: bool  # a day or hours
    is_plain: bool  # names the matter
    is_owned: bool  # a squad, or "we"
    is_hedged: bool  # asked, past, perhaps, or about other things
    mentions: bool  # has words of the matter at all


@dataclass(frozen=True, slots=True)
class ParsedMessage:
    """What a message says. `fragment` is what it says without saying what is wanted."""

    requests: tuple[ShiftRequest, ...]
    warnings: tuple[str, ...]
    fragment: tuple[ShiftWindow, ...]
    fragment_squads: tuple[str, ...]
    is_ours: bool
    has_hours: bool  # some, understood or not
    clocks: tuple[ClockTime, ...]  # single times, which only a question gives a meaning
    evidence: ParseEvidence
    noise: int
    days: tuple[str, ...]
    accord: ParserAgreement = ParserAgreement.SURE


def moment_of(at: int, timezone: str) -> LocalMoment:
    """The hour on the clock of a zone."""
    there = moment(at).astimezone(ZoneInfo(timezone))
    today = there.date()
    operational = today if there.hour >= _DAY_STARTS else today - timedelta(days=1)
    return LocalMoment(today, there.hour * 60 + there.minute, operational)


def parse_message(text: str, setting: ParserContext) -> ParsedMessage:
    """Everything a message says, by phrases alone."""
    plain = normalize(text)
    return parse_scanned(plain, scan(plain, setting.now, Vocabulary(setting.squads, setting.shifts)), setting)


def parse_scanned(plain: str, scanned: ScannedText, setting: ParserContext) -> ParsedMessage:
    """What a text says that `spelling` has gone over and `scanner` has cut."""
    parts = sentences(plain, scanned, setting.now)
    statements = resolve_statements(parts)
    is_short = len(plain.split()) <= _SHORT
    counted = [s for s in statements if _counts(s, is_short=is_short)]
    warnings = [*scanned.warnings, *(w for part in parts for w in part.warnings)]
    requests: list[ShiftRequest] = []
    for statement in counted:
        requests.extend(_requests(statement, setting, warnings))
    wanted = _without_clashes(without_echo(requests), warnings)
    loose = [s for part in parts for s in part.statements]
    plans = [resolve_windows(pair, setting.now) for s in loose for pair in s.pairs]
    if not counted:
        warnings.extend(warning for planned in plans for warning in planned.warnings)
    fragment = [window for planned in plans for window in planned.windows if any(window)]
    return ParsedMessage(
        requests=wanted,
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


def _days(requests: Sequence[ShiftRequest], loose: Sequence[ShiftStatement]) -> tuple[str, ...]:
    """The days that are wanted; of a fragment, those that it names."""
    wanted = {request.date for request in requests if request.date}
    return tuple(sorted(wanted or {f"{day.date:%Y%m%d}" for s in loose for day in s.days}))


def _bare_ends(statements: Sequence[ShiftStatement]) -> Iterator[ClockTime]:
    """ "Till 7": which of the two, only a start that is known elsewhere can tell."""
    for span in (
        slot for s in statements for pair in s.pairs for slot in pair.slots if isinstance(slot, ClockSpan)
    ):
        if span.start is None and span.end is not None and span.end.form is ClockFormat.BARE:
            yield span.end


def _counts(statement: ShiftStatement, *, is_short: bool) -> bool:
    """Is it meant? A plain phrase needs a time, a loose one somebody's name as well."""
    act = statement.act
    if act is None or act.action is None or statement.is_foreign or statement.is_idle or statement.is_tangled:
        return False
    if not statement.is_placed:
        return _is_bare(statement, act, is_short=is_short)
    if statement.is_theirs and not statement.is_ours and not statement.squads:
        return False  # somebody's, but whose?
    if act.is_plain:
        is_ones = act.takes_object or act.written == "covered"
        return not (statement.is_mine and is_ones and not statement.squads)
    if act.is_terse and statement.noise:
        return False
    if is_owned(statement):
        return not (act.action is ShiftAction.ADD and statement.is_mine and not statement.squads)
    has_time = bool(statement.days) or any(isinstance(s, ClockSpan) for p in statement.pairs for s in p.slots)
    return (
        act.action is not ShiftAction.ADD
        and has_time
        and not (statement.is_mine and not _is_of_others(act))
        and statement.noise < PURE
        and not _is_ones(act)
    )


def _is_bare(statement: ShiftStatement, act: Act, *, is_short: bool) -> bool:
    """ "We have no crew", "remove our shift": all but the time, and nothing else."""
    if act.action is ShiftAction.ADD or not (act.is_plain or act.action is ShiftAction.REMOVE):
        return False
    if not is_owned(statement):
        return (
            act.action is ShiftAction.NO_CREW and is_short and not statement.noise and not statement.is_mine
        )
    return not statement.noise or (act.action is ShiftAction.NO_CREW and is_short)


def _is_of_others(act: Act) -> bool:
    """ "I do not have anybody" is not said of oneself."""
    return bool(_OTHERS.search(act.written))


def _is_ones(act: Act) -> bool:
    """ "Can not ride tomorrow" is said by one person of himself."""
    return act.written.endswith(_PERSONAL) and "anybody" not in act.written


def _requests(statement: ShiftStatement, setting: ParserContext, warnings: list[str]) -> list[ShiftRequest]:
    action = statement.act.action if statement.act else None
    squads: Sequence[str | None] = statement.squads or (setting.squad,)
    requests: list[ShiftRequest] = []
    for pair in statement.pairs:
        planned = resolve_windows(pair, setting.now)
        warnings.extend(planned.warnings)
        for squad in squads:
            requests.extend(
                ShiftRequest(
                    action, squad, f"{window.date:%Y%m%d}" if window.date else None, window.start, window.end
                )
                for window in planned.windows
            )
    return requests


def without_echo(requests: Sequence[ShiftRequest]) -> tuple[ShiftRequest, ...]:
    """Once each; and none that says less than another of the same kind."""
    unique = list(dict.fromkeys(requests))
    return tuple(r for r in unique if not any(_says_less(r, other) for other in unique))


def _without_clashes(requests: Sequence[ShiftRequest], warnings: list[str]) -> tuple[ShiftRequest, ...]:
    """Two things that are said of the same hours leave them open: which one is meant, is asked."""
    clashing = {one for one in requests for other in requests if _clash(one, other)}
    for one in sorted(clashing, key=str):
        day = date.fromisoformat(one.date or "")
        told = f"{one.squad} on {day:%a} {day.day} {day:%b} {one.start} to {one.end}"
        warnings.append(f"two things are said of {told}; which?")
    open_ones = (r._replace(start=None, end=None) if r in clashing else r for r in requests)
    return tuple(dict.fromkeys(open_ones))


def _clash(one: ShiftRequest, other: ShiftRequest) -> bool:
    if (
        one.action == other.action
        or None in (*one, *other)
        or (one.squad, one.date) != (other.squad, other.date)
    ):
        return False
    return bool(is_complete(one).slots & is_complete(other).slots)


def is_complete(request: ShiftRequest) -> CalendarCommand:
    """A request that has everything."""
    return CalendarCommand(
        request.action or ShiftAction.NO_CREW,
        request.squad or "",
        request.date or "",
        request.start or "",
        request.end or "",
    )


def _says_less(less: ShiftRequest, more: ShiftRequest) -> bool:
    pairs = list(zip(less, more, strict=True))
    return less != more and all(one is None or one == other for one, other in pairs)


def _evidence(parts: Sequence[Sentence], counted: Sequence[ShiftStatement]) -> ParseEvidence:
    every = [s for part in parts for s in part.statements]
    acts = [s for s in every if s.act]
    return ParseEvidence(
        is_placed=any(s.is_placed for s in counted or every),
        is_plain=any(s.act and s.act.is_plain for s in counted or acts),
        is_owned=any(s.squads or s.is_ours for s in counted or every),
        is_hedged=any(part.mood.asks_nothing or any(s.is_idle for s in part.statements) for part in parts),
        mentions=bool(acts) or any(part.mentions_crew for part in parts),
    )
