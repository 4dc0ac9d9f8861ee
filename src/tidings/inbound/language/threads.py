"""Slot filling over a whole thread: each line may fill missing slots or correct earlier ones. Pure.

Anyone may fill a missing slot. A value from the owning squad can be changed only by that squad, an officer or
an admin. The result is deterministic, so a run after a crash is the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date

from ..domain import ShiftRequest, Utterance
from .normalization import normalize
from .parser import ParsedMessage, contradict, without_echo
from .shift_words import GRID, hhmm, minutes
from .time_windows import cut, first_after
from .tokens import ClockFormat, ClockTime

SLOTS = ("squad", "date", "start", "end")
"""In the order of the questions."""

AUTHORITY = frozenset({"officer", "admin"})
_CANCEL = re.compile(
    r"^\W*(?:never ?mind|nvm|forget (?:it|that|about it)|cancel (?:that|this|it|my request|the request)"
    r"|disregard|scratch that|ignore (?:that|me|my last)|drop it|no longer needed|not needed any ?more)\b"
)
_CORRECT = re.compile(
    r"\b(?:actually|correction|i mean|i meant|make (?:that|it)|sorry|wrong|instead|not|rather"
    r"|change (?:it|that)|should be)\b"
)


@dataclass(slots=True)
class RequestThread:
    """The requests so far, with notes and warnings."""

    owner: str | None
    requests: list[ShiftRequest] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def missing(self) -> list[str]:
        """The slots that some request is missing, the most important first."""
        return [slot for slot in SLOTS if any(getattr(request, slot) is None for request in self.requests)]


def is_cancelled(text: str) -> bool:
    """Return whether a line withdraws everything."""
    return bool(_CANCEL.search(normalize(text)))


def is_correction(text: str) -> bool:
    """Return whether a line corrects an earlier one."""
    return bool(_CORRECT.search(normalize(text)))


def apply_utterance(
    thread: RequestThread, line: Utterance, parsed: ParsedMessage, squads: Sequence[str], asked: str | None
) -> None:
    """Apply one more line of the conversation to the thread."""
    thread.warnings = []
    if is_cancelled(line.text) and (thread.requests or not parsed.requests):
        thread.requests = []
        thread.notes.append(f"{line.speaker} withdrew it")
        return
    before = list(thread.requests)
    may_change = line.squad in {None, thread.owner} or line.role in AUTHORITY
    if parsed.requests:
        corrects = is_correction(line.text)
        thread.requests = _with(before, parsed.requests, may_change=may_change, corrects=corrects)
    elif thread.requests:
        asked = asked or next(iter(thread.missing), None)
        corrects = may_change and is_correction(line.text)
        thread.requests = _filled(thread, line, parsed, squads, asked, corrects=corrects)
    thread.requests = [piece for request in thread.requests for piece in _on_days(request)]
    is_news = thread.requests != before
    settled = tuple(f"{clock.written} could be" for clock in parsed.clocks) if is_news else ()
    thread.warnings.extend(w for w in parsed.warnings if not (settled and w.startswith(settled)))
    if is_news:
        thread.notes.append(f"{line.speaker}{f' ({line.squad})' if line.squad else ''}: {_summary(thread.requests)}")


def _with(
    known: Sequence[ShiftRequest], told: Sequence[ShiftRequest], *, may_change: bool, corrects: bool
) -> list[ShiftRequest]:
    """Add complete requests: each fills an open one, corrects one, or is new."""
    kept: list[ShiftRequest] = list(known)
    added: list[ShiftRequest] = []
    for new in told:
        fitting = [request for request in kept if request != new and _fits(request, new)]
        wrong = [r for r in kept if r.squad == new.squad and r not in told and _clashes(r, new, corrects)]
        if new in kept or (wrong and not may_change):
            continue
        if fitting:
            kept = [request for request in kept if request not in fitting]
            added += [_merge(request, new) for request in fitting]
        elif wrong:
            kept = [request for request in kept if request not in wrong]
            added.append(_merge(new, wrong[0]))
        else:
            added.append(new)
    return list(dict.fromkeys([*kept, *added]))


def _fits(known: ShiftRequest, new: ShiftRequest) -> bool:
    """Return whether the new request completes the known one: no stated slot differs, and one is open."""
    pairs = list(zip(known, new, strict=True))
    return all(None in pair or pair[0] == pair[1] for pair in pairs) and any(None in pair for pair in pairs)


def _clashes(known: ShiftRequest, new: ShiftRequest, corrects: bool) -> bool:
    """Return whether two requests contradict: opposites for the same hours, or a correction."""
    if corrects:
        return known.action == new.action or None in (known.date, new.date) or known.date == new.date
    return contradict(known, new)


def _merge(first: ShiftRequest, second: ShiftRequest) -> ShiftRequest:
    """Return the first request with missing slots filled from the second."""
    filled = {name: getattr(second, name) for name, value in first._asdict().items() if value is None}
    return first._replace(**filled)


def _filled(
    thread: RequestThread,
    line: Utterance,
    parsed: ParsedMessage,
    squads: Sequence[str],
    asked: str | None,
    *,
    corrects: bool,
) -> list[ShiftRequest]:
    """Fill a fragment ("1800-0600", "saturday", "42") into the slot of the question, or where it fits."""
    days = {request.date for request in thread.requests}
    if corrects and len(days) > 1 and any(window.date for window in parsed.fragment):
        thread.warnings.append("several days are open, and it is unclear which one you mean")
        return thread.requests
    named = parsed.fragment_squads or ((line.squad,) if parsed.is_ours and asked == "squad" else ())
    filled: list[ShiftRequest] = []
    for request in thread.requests:
        is_open = request.squad not in squads
        known = request._replace(squad=named[0]) if named and (is_open or corrects) else request
        filled.extend(_answered(known, parsed, asked, corrects, thread.warnings))
    return list(without_echo(filled))


def _answered(
    request: ShiftRequest, parsed: ParsedMessage, asked: str | None, corrects: bool, warnings: list[str]
) -> list[ShiftRequest]:
    if not parsed.fragment:
        return [_clocked(request, parsed.clocks, asked, warnings)]
    answers: list[ShiftRequest] = []
    for window in parsed.fragment:
        said = f"{window.date:%Y%m%d}" if window.date else None
        if said and request.date and said != request.date and not corrects:
            continue
        open_times = request.start is None or request.end is None
        start, end = (window.start, window.end) if open_times or corrects else (None, None)
        answers.append(
            request._replace(
                date=said if said and (request.date is None or corrects) else request.date,
                start=start or request.start,
                end=end or request.end,
            )
        )
    return answers or [request]


def _clocked(
    request: ShiftRequest, clocks: Sequence[ClockTime], asked: str | None, warnings: list[str]
) -> ShiftRequest:
    """Fill a single time into the start or end of the question."""
    if not clocks or asked not in {"start", "end"} or getattr(request, asked) is not None:
        return request
    clock = clocks[0]
    if clock.at % GRID:
        warnings.append(f"{clock.written} is not on the hour or half hour; which whole or half hour?")
        return request
    at: int | None = clock.at
    if clock.form is ClockFormat.BARE:
        at = first_after(clock.at, minutes(request.start)) if asked == "end" and request.start else None
    if at is None:
        warnings.append(f"{clock.written} could be in the morning or in the evening; please write HHMM")
        return request
    return request._replace(start=hhmm(at)) if asked == "start" else request._replace(end=hhmm(at))


def _on_days(request: ShiftRequest) -> list[ShiftRequest]:
    """Split a window that crosses 0600 into two operational days."""
    if request.date is None or request.start is None or request.end is None:
        return [request]
    day = date.fromisoformat(request.date)
    start, end = minutes(request.start), minutes(request.end)
    return [
        request._replace(date=f"{on:%Y%m%d}", start=hhmm(first), end=hhmm(last))
        for on, first, last in cut(day, start, end)
    ]


def _summary(requests: Sequence[ShiftRequest]) -> str:
    """Format requests for the reasoning."""
    return "; ".join(
        f"{(r.action or 'something').replace('_', ' ')} {r.squad or 'squad?'} {r.date or 'date?'}"
        f" {r.start or '????'}-{r.end or '????'}"
        for r in requests
    )
