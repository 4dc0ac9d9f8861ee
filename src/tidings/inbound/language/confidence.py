"""How sure the rules are: percentages measured on the tuning messages, never a feeling.

For a yes or a no it is the share of such answers that were right, with one doubt added on each side so that
no answer is certain. `tests/unit/test_language_evaluation.py` measures again and holds the table to it. A
"don't know" is put into the band that is listed for review by rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from ..domain import ShiftRequest
from .parser import ParsedMessage, ParserAgreement


class ConfidenceGround(StrEnum):
    """On what an answer rests."""

    COMPLETE = "names the matter, the day and the hours"
    PARTIAL = "names the matter and a day or hours"
    LOOSE = "says it in loose words, with a squad and a time"
    APART = "is a request by one of two readings, or hardly by both"
    OPEN = "names the matter, but asks, doubts or looks back"
    UNPLACED = "says what is wanted, but neither day nor hours"
    TIMED = "names the matter and a time, but not what is wanted"
    FOREIGN = "is in another language, as far as one can tell"
    MENTIONED = "has a word of the matter"
    NOTHING = "has nothing of the matter"


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
VERDICTS: Mapping[ConfidenceGround, bool | None] = {
    ConfidenceGround.COMPLETE: True,
    ConfidenceGround.PARTIAL: True,
    ConfidenceGround.LOOSE: True,
    ConfidenceGround.APART: True,
    ConfidenceGround.OPEN: None,
    ConfidenceGround.UNPLACED: None,
    ConfidenceGround.TIMED: None,
    ConfidenceGround.FOREIGN: None,
    ConfidenceGround.MENTIONED: False,
    ConfidenceGround.NOTHING: False,
}


def confidence_ground(heard: ParsedMessage) -> ConfidenceGround:
    """On what the answer to this message rests."""
    seen = heard.evidence
    if heard.accord is ParserAgreement.NONE:
        return ConfidenceGround.OPEN
    if heard.requests and heard.accord is ParserAgreement.LOOSE:
        return ConfidenceGround.APART
    if heard.requests:
        if not seen.is_plain:
            return ConfidenceGround.LOOSE
        return ConfidenceGround.COMPLETE if _is_complete(heard.requests) else ConfidenceGround.PARTIAL
    if not seen.mentions:
        return ConfidenceGround.NOTHING
    if seen.is_placed:
        return ConfidenceGround.OPEN if seen.is_hedged else ConfidenceGround.TIMED
    says_so = seen.is_plain and not seen.is_hedged and (seen.is_owned or heard.noise <= 1)
    return ConfidenceGround.UNPLACED if says_so else ConfidenceGround.MENTIONED


def _is_complete(requests: Sequence[ShiftRequest]) -> bool:
    return all(request.date and request.start and request.end for request in requests)
