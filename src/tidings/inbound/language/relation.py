"""Decides whether a message continues an open request: by question, day, yes or no, and correction."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..domain import ShiftRequest, WorkflowRelation
from .normalization import normalize
from .parser import ParsedMessage
from .threads import is_cancelled, is_correction

NAME = "rules"

_YES_OR_NO = re.compile(
    r"^\W*(?:yes|yep|yeah|yup|y|no|nope|nah|n|correct|right|confirmed?|exactly|that is (?:right|correct|it)"
    r"|ok(?:ay)?|sure|please do|go ahead|affirmative|negative|both|all of (?:them|it)|the same|same|👍)\b"
)
_POINTS_BACK = re.compile(r"\b(?:that|those|it|them|the (?:first|second|last|other) one|as (?:before|above))\b")
_SHORT = 6  # words


def relate(
    text: str, parsed: ParsedMessage, open_requests: Sequence[ShiftRequest], asked: str | None, *, quotes: bool
) -> WorkflowRelation:
    """Return the answer of the first matching rule; None if only a model or a person can decide."""
    plain = normalize(text)
    if quotes:
        return _yes(0.95, "it quotes a line of the thread")
    if is_cancelled(text):
        return _yes(0.9, "it withdraws the request")
    if parsed.requests:
        return _of_request(parsed.requests, open_requests, corrects=is_correction(text))
    if asked and _answers(parsed, asked):
        return _yes(0.95, f"it answers the question for the {asked}")
    is_short = len(plain.split()) <= _SHORT
    if is_short and _YES_OR_NO.match(plain):
        return _yes(0.85, "it says yes or no")
    tells = bool(parsed.fragment or parsed.fragment_squads or parsed.has_hours)
    if tells and is_correction(text):
        return _yes(0.85, "it corrects an earlier message")
    if tells and {request.date for request in open_requests if request.date} & set(parsed.days):
        return _yes(0.8, "it mentions the day of the open request")
    if tells and parsed.noise <= 1:
        return _yes(0.8, "it has a time or a squad and little else")
    if is_short and _POINTS_BACK.search(plain):
        return WorkflowRelation(None, 0.5, "it refers to something without saying what", NAME)
    if parsed.evidence.mentions and (tells or parsed.evidence.is_owned):
        return WorkflowRelation(None, 0.4, "it mentions crews, but does not answer", NAME)
    return WorkflowRelation(False, 0.9, "it has nothing that the open request needs", NAME)


def _of_request(new: Sequence[ShiftRequest], known: Sequence[ShiftRequest], *, corrects: bool) -> WorkflowRelation:
    """Relate a complete request: a repetition, a correction, or a new one."""
    squads = {request.squad for request in known if request.squad}
    if squads and not any(request.squad in squads for request in new):
        return WorkflowRelation(False, 0.9, "it is about another squad", NAME)
    if any(_same(one, other) for one in new for other in known):
        return _yes(0.85, "it repeats or completes the open request")
    if corrects:
        return _yes(0.85, "it corrects the open request")
    return WorkflowRelation(False, 0.85, "it is a separate request", NAME)


def _same(new: ShiftRequest, known: ShiftRequest) -> bool:
    """Return whether two requests agree in all stated slots, or are opposites for the same day."""
    if None not in (new.action, known.action) and new.action != known.action:
        return new.date is not None and new.date == known.date and new.squad == known.squad
    return all(
        None in (one, other) or one == other for one, other in ((new.squad, known.squad), (new.date, known.date))
    ) and (None in (known.date, known.start, known.end) or new == known)


def _answers(parsed: ParsedMessage, asked: str) -> bool:
    """Return whether the message has a value for the slot of the question."""
    match asked:
        case "squad":
            return bool(parsed.fragment_squads) or parsed.evidence.is_owned
        case "date":
            is_odd = bool(parsed.warnings) and parsed.noise <= 1  # a past or invalid day
            return is_odd or any(window.date for window in parsed.fragment)
        case "start" | "end":
            return parsed.has_hours or bool(parsed.clocks)
        case _:
            return False


def _yes(confidence: float, reason: str) -> WorkflowRelation:
    return WorkflowRelation(True, confidence, reason, NAME)
