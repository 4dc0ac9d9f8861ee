"""Two readings of one message, by phrases and by weight: what both clearly say is sure, the rest is loose.

What is loose is read back before anything is booked. The bars were chosen on authors whom the weights
had not met; see docs/reference/shift-language.md. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..domain import ShiftRequest
from .classifier import Classification
from .parser import ParsedMessage, ParserAgreement

_ALONE = 0.68  # so likely must the second reading find it, if the first finds nothing
_BARE = 0.45  # and so likely if hardly a word of it speaks of other things: "+42 sat night"
_HEDGED = 0.82  # and so likely if it sounds like a question, a perhaps or the past
_HALF = 0.95  # and so likely if a day or hours are missing: most talk of the past has no hours
_NEVER = 0.1  # so unlikely, and the first reading alone is not enough
_HARDLY = 0.5  # the same, if a day or hours are missing
_CLEAR = 0.8  # so likely must be what is wanted, and each of its mentions
_CLEARER = (0.95, 0.98)  # the same, if several things are wanted


def agree(first: ParsedMessage, second: Classification) -> ParsedMessage:
    """What was heard, with how well the readings agree on it."""
    if not first.requests:
        return _by_weight(first, second) if _stands_alone(first, second) else first
    if set(first.requests) == set(second.requests):
        return replace(
            first, accord=ParserAgreement.SURE if _is_clear(first, second) else ParserAgreement.LOOSE
        )
    if second.likely < (_NEVER if _is_whole(first.requests) else _HARDLY) and not _says_only_that(first):
        return replace(first, requests=(), accord=ParserAgreement.NONE)
    if _is_part(second.requests, first.requests) or _is_other(second, first.requests):
        return _by_weight(first, second)
    return replace(first, accord=ParserAgreement.LOOSE)


def _by_weight(first: ParsedMessage, second: Classification) -> ParsedMessage:
    return replace(
        first,
        requests=second.requests,
        warnings=tuple(dict.fromkeys((*first.warnings, *second.warnings))),
        days=tuple(sorted({request.date for request in second.requests if request.date})),
        accord=ParserAgreement.LOOSE,
    )


def _stands_alone(first: ParsedMessage, second: Classification) -> bool:
    """Is it likely enough without the first reading?"""
    if not _is_whole(second.requests):
        return bool(second.requests) and second.likely >= _HALF
    if first.evidence.is_hedged:
        return second.likely >= _HEDGED
    return second.likely >= (_BARE if first.noise <= 1 else _ALONE)


def _says_only_that(first: ParsedMessage) -> bool:
    """The matter in plain words and nothing else: "we won't have a crew saturday", whatever it weighs."""
    seen = first.evidence
    is_told = _is_whole(first.requests) or (seen.is_plain and seen.is_owned)
    return is_told and not seen.is_hedged and not first.noise


def _is_clear(first: ParsedMessage, second: Classification) -> bool:
    """Several things in one message are easily mixed up, unless it says nothing else and in plain words."""
    is_simple = len(second.requests) == 1 or (first.evidence.is_plain and not first.noise)
    wanted, mentioned = (_CLEAR, _CLEAR) if is_simple else _CLEARER
    return second.likely >= wanted and second.margin >= mentioned


def _is_part(some: Sequence[ShiftRequest], all_: Sequence[ShiftRequest]) -> bool:
    """Of several days or hours, the weights leave out those that were only talked about."""
    return bool(some) and set(some) < set(all_) and len({request.action for request in all_}) == 1


def _is_other(second: Classification, requests: Sequence[ShiftRequest]) -> bool:
    """What is wanted is better known by weight than by phrase: "out us on, I meant put"."""
    wanted = {request.action for request in requests}
    return bool(second.requests) and len(wanted) == 1 and wanted != second.wanted and second.likely >= _CLEAR


def _is_whole(requests: Sequence[ShiftRequest]) -> bool:
    """Do all of them say when?"""
    return bool(requests) and all(request.date and request.start and request.end for request in requests)
