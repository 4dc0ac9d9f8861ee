"""The measured confidence of each kind of answer.

For yes and no it is the share of correct answers on the tuning messages, with Laplace smoothing, so it never
reaches 100. `tests/unit/test_language_evaluation.py` checks the table. An unknown answer gets a fixed value
in the band for review.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from .parser import ParsedMessage, ParserAgreement, is_whole


class ConfidenceGround(StrEnum):
    """Why an intent was decided; people see the value as "it ..."."""

    COMPLETE = "states the action, the day and the hours"
    PARTIAL = "states the action and a day or hours"
    LOOSE = "is a colloquial request with a squad and a time"
    APART = "is a request according to the parser or the classifier, but not clearly to both"
    OPEN = "mentions a shift, but asks, doubts or refers to the past"
    UNPLACED = "states the action, but neither day nor hours"
    TIMED = "mentions a shift and a time, but no action"
    FOREIGN = "seems to be in another language"
    MENTIONED = "only mentions shifts"
    NOTHING = "is not about shifts"


MEASURED: Mapping[ConfidenceGround, int] = {
    ConfidenceGround.COMPLETE: 99,
    ConfidenceGround.PARTIAL: 96,
    ConfidenceGround.LOOSE: 98,
    ConfidenceGround.APART: 98,
    ConfidenceGround.OPEN: 40,
    ConfidenceGround.UNPLACED: 35,
    ConfidenceGround.TIMED: 35,
    ConfidenceGround.FOREIGN: 35,
    ConfidenceGround.MENTIONED: 98,
    ConfidenceGround.NOTHING: 99,
}
_NO = frozenset({ConfidenceGround.MENTIONED, ConfidenceGround.NOTHING})
VERDICTS: Mapping[ConfidenceGround, bool | None] = {
    ground: ground not in _NO if MEASURED[ground] > 50 else None for ground in ConfidenceGround
}


def confidence_ground(parsed: ParsedMessage) -> ConfidenceGround:
    """Return the reason for the intent of a message."""
    seen = parsed.evidence
    if parsed.accord is ParserAgreement.NONE:
        return ConfidenceGround.OPEN
    if parsed.requests and parsed.accord is ParserAgreement.LOOSE:
        return ConfidenceGround.APART
    if parsed.requests:
        if not seen.is_plain:
            return ConfidenceGround.LOOSE
        return ConfidenceGround.COMPLETE if is_whole(parsed.requests) else ConfidenceGround.PARTIAL
    if not seen.mentions:
        return ConfidenceGround.NOTHING
    if seen.is_placed:
        return ConfidenceGround.OPEN if seen.is_hedged else ConfidenceGround.TIMED
    says_so = seen.is_plain and not seen.is_hedged and (seen.is_owned or parsed.noise <= 1)
    return ConfidenceGround.UNPLACED if says_so else ConfidenceGround.MENTIONED
