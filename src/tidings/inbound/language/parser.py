"""Parses one message into calendar requests. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from typing import NamedTuple
from zoneinfo import ZoneInfo

from ...model.time import moment
from ..domain import ShiftAction, ShiftRequest
from .normalization import normalize
from .resolution import PURE, is_owned, resolve_statements
from .scanner import ScannedText, scan
from .statements import DayHours, Sentence, ShiftStatement, sentences
from .time_windows import ShiftWindow, resolve_windows
from .tokens import Act, ClockFormat, ClockSpan, ClockTime, LocalMoment, ParserContext

_DAY_STARTS = 6
_SHORT = 8  # words in a message that says no more than "no crew"
_OTHERS = re.compile(r"\b(?:anybody|nobody|people|crew|folks|members|drivers|enough|bodies|takers|volunteers)\b")
_PERSONAL = (" ride", " come", " be there", " make it", " work")


class ParserAgreement(StrEnum):
    """How well parser and classifier agree."""

    SURE = "sure"  # both clearly find the same
    LOOSE = "loose"  # they differ, or the agreement is weak: needs confirmation
    NONE = "none"  # the classifier contradicts the parser


class ParseEvidence(NamedTuple):
    """The evidence for a request."""

    is_placed: bool  # has a day or hours
    is_plain: bool  # has an explicit phrase
    is_owned: bool  # has a squad or "we"
    is_hedged: bool  # a question, the past, a possibility, or another topic
    mentions: bool  # has any word about crews or shifts


@dataclass(frozen=True, slots=True)
class ParsedMessage:
    """A parsed message. `fragment` holds the days and hours of a message without an action."""

    requests: tuple[ShiftRequest, ...]
    warnings: tuple[str, ...]
    fragment: tuple[ShiftWindow, ...]
    fragment_squads: tuple[str, ...]
    is_ours: bool
    has_hours: bool  # has hours, understood or not
    clocks: tuple[ClockTime, ...]  # single times, which only make sense as an answer
    evidence: ParseEvidence
    noise: int
    days: tuple[str, ...]
    accord: ParserAgreement = ParserAgreement.SURE


def moment_of(at: int, timezone: str) -> LocalMoment:
    """Return the local time of an instant."""
    there = moment(at).astimezone(ZoneInfo(timezone))
    today = there.date()
    operational = today if there.hour >= _DAY_STARTS else today - timedelta(days=1)
    return LocalMoment(today, there.hour * 60 + there.minute, operational)


def parse_message(text: str, setting: ParserContext) -> ParsedMessage:
    """Parse a message with the phrases alone."""
    plain = normalize(text)
    return parse_scanned(plain, scan(plain, setting), setting)


def parse_scanned(plain: str, scanned: ScannedText, setting: ParserContext) -> ParsedMessage:
    """Parse a text that was normalized and scanned."""
    parts = sentences(plain, scanned, setting.now)
    statements = resolve_statements(parts)
    is_short = len(plain.split()) <= _SHORT
    counted = [s for s in statements if _counts(s, is_short=is_short)]
    warnings = [*scanned.warnings, *(w for part in parts for w in part.warnings)]
    requests: list[ShiftRequest] = []
    for statement in counted:
        action, squads = statement.act.action if statement.act else None, statement.squads or (setting.squad,)
        for pair in statement.pairs:
            requests += requests_of(action, squads, pair, setting.now, warnings)
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
    """Return the days of the requests, or those of the fragment."""
    wanted = {request.date for request in requests if request.date}
    return tuple(sorted(wanted or {f"{day.date:%Y%m%d}" for s in loose for day in s.days}))


def _bare_ends(statements: Sequence[ShiftStatement]) -> Iterator[ClockTime]:
    """Yield ambiguous ends such as "till 7", which need a start from elsewhere."""
    for span in (slot for s in statements for pair in s.pairs for slot in pair.slots if isinstance(slot, ClockSpan)):
        if span.start is None and span.end is not None and span.end.form is ClockFormat.BARE:
            yield span.end


def _counts(statement: ShiftStatement, *, is_short: bool) -> bool:
    """Return whether a statement is a request: an explicit phrase needs a time, others also an owner."""
    act = statement.act
    if act is None or act.action is None or statement.is_foreign or statement.is_idle or statement.is_tangled:
        return False
    if not statement.is_placed:
        return _is_bare(statement, act, is_short=is_short)
    if statement.is_theirs and not statement.is_ours and not statement.squads:
        return False  # "they", without a squad
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
    """Accept "we have no crew" and "remove our shift": complete but for the time, and nothing else."""
    if act.action is ShiftAction.ADD or not (act.is_plain or act.action is ShiftAction.REMOVE):
        return False
    if not is_owned(statement):
        return act.action is ShiftAction.NO_CREW and is_short and not statement.noise and not statement.is_mine
    return not statement.noise or (act.action is ShiftAction.NO_CREW and is_short)


def _is_of_others(act: Act) -> bool:
    """Return whether the phrase is about other people: "I do not have anybody"."""
    return bool(_OTHERS.search(act.written))


def _is_ones(act: Act) -> bool:
    """Return whether one person speaks about themselves: "can not ride tomorrow"."""
    return act.written.endswith(_PERSONAL) and "anybody" not in act.written


def requests_of(
    action: ShiftAction | None, squads: Sequence[str | None], pair: DayHours, now: LocalMoment, warnings: list[str]
) -> list[ShiftRequest]:
    """Return a request for each squad and each window of the days and hours."""
    planned = resolve_windows(pair, now)
    warnings.extend(planned.warnings)
    return [
        ShiftRequest(action, squad, f"{window.date:%Y%m%d}" if window.date else None, window.start, window.end)
        for squad in dict.fromkeys(squads)
        for window in planned.windows
    ]


def is_whole(requests: Sequence[ShiftRequest]) -> bool:
    """Return whether all requests have a day and hours."""
    return bool(requests) and all(request.date and request.start and request.end for request in requests)


def without_echo(requests: Sequence[ShiftRequest]) -> tuple[ShiftRequest, ...]:
    """Drop duplicates and requests that another one completes."""
    unique = list(dict.fromkeys(requests))
    return tuple(r for r in unique if not any(_says_less(r, other) for other in unique))


def _without_clashes(requests: Sequence[ShiftRequest], warnings: list[str]) -> tuple[ShiftRequest, ...]:
    """Remove the hours of contradictory requests, so that the bot asks for them."""
    clashing = {one for one in requests for other in requests if contradict(one, other)}
    for one in sorted(clashing, key=str):
        day = date.fromisoformat(one.date or "")
        where = f"{one.squad} on {day:%a} {day.day} {day:%b} {one.start} to {one.end}"
        warnings.append(f"there are two requests for {where}; which?")
    open_ones = (r._replace(start=None, end=None) if r in clashing else r for r in requests)
    return tuple(dict.fromkeys(open_ones))


def contradict(one: ShiftRequest, other: ShiftRequest) -> bool:
    """Return whether complete requests want different actions of a squad at the same time."""
    first, second = one.command, other.command
    if not first or not second or first.action is second.action or (one.squad, one.date) != (other.squad, other.date):
        return False
    return bool(first.slots & second.slots)


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
