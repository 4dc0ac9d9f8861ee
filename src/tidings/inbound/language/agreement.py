"""Combines the results of parser and classifier; without clear agreement a confirmation is needed. Pure.

The thresholds were chosen on messages of authors that were not in the training data; see
docs/reference/shift-language.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..domain import ShiftRequest
from .classifier import Classification
from .parser import ParsedMessage, ParserAgreement, is_whole

# Least probability at which the classifier's requests count although the parser finds none:
_ALONE = 0.68
_BARE = 0.45  # with almost no unrelated words: "+42 sat night"
_HEDGED = 0.82  # if it sounds like a question, a possibility or the past
_HALF = 0.95  # if a day or hours are missing, as in most talk about the past
# Probability below which the parser's requests are dropped:
_NEVER = 0.1
_HARDLY = 0.5  # if a day or hours are missing
# Least probability of the action and of each mention for clear agreement:
_CLEAR = 0.8
_CLEARER = (0.95, 0.98)  # with several requests


def agree(first: ParsedMessage, second: Classification) -> ParsedMessage:
    """Return the parsed message with the agreement of parser (`first`) and classifier (`second`)."""
    if not first.requests:
        return _by_weight(first, second) if _stands_alone(first, second) else first
    if set(first.requests) == set(second.requests):
        return replace(first, accord=ParserAgreement.SURE if _is_clear(first, second) else ParserAgreement.LOOSE)
    if second.likely < (_NEVER if is_whole(first.requests) else _HARDLY) and not _says_only_that(first):
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
    """Return whether the classifier is confident enough although the parser found nothing."""
    if not is_whole(second.requests):
        return bool(second.requests) and second.likely >= _HALF
    if first.evidence.is_hedged:
        return second.likely >= _HEDGED
    return second.likely >= (_BARE if first.noise <= 1 else _ALONE)


def _says_only_that(first: ParsedMessage) -> bool:
    """Return whether the message is a plain request and nothing else: "we won't have a crew saturday"."""
    seen = first.evidence
    is_told = is_whole(first.requests) or (seen.is_plain and seen.is_owned)
    return is_told and not seen.is_hedged and not first.noise


def _is_clear(first: ParsedMessage, second: Classification) -> bool:
    """Return whether the agreement is clear; several requests need a higher probability."""
    is_simple = len(second.requests) == 1 or (first.evidence.is_plain and not first.noise)
    wanted, mentioned = (_CLEAR, _CLEAR) if is_simple else _CLEARER
    return second.likely >= wanted and second.margin >= mentioned


def _is_part(some: Sequence[ShiftRequest], all_: Sequence[ShiftRequest]) -> bool:
    """Return whether the classifier drops some of the requests, such as days that were only mentioned."""
    return bool(some) and set(some) < set(all_) and len({request.action for request in all_}) == 1


def _is_other(second: Classification, requests: Sequence[ShiftRequest]) -> bool:
    """Return whether the classifier clearly finds another action: "out us on, I meant put"."""
    wanted = {request.action for request in requests}
    return bool(second.requests) and len(wanted) == 1 and wanted != second.wanted and second.likely >= _CLEAR
