"""How sure the rules are: percentages measured on the tuning messages, never a feeling.

For a yes or a no it is the share of such answers that were right, with one doubt added on each side so that
no answer is certain. `tests/unit/test_language_evaluation.py` measures again and holds the table to it. A
"don't know" is put into the band that is listed for review by rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from ..words import Request
from .grammar import Accord, Heard


class Ground(StrEnum):
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


MEASURED: Mapping[Ground, int] = {
    Ground.COMPLETE: 99,
    Ground.PARTIAL: 96,
    Ground.LOOSE: 98,
    Ground.APART: 98,
    Ground.OPEN: 40,
    Ground.UNPLACED: 35,
    Ground.TIMED: 35,
    Ground.FOREIGN: 35,
    Ground.MENTIONED: 98,
    Ground.NOTHING: 99,
}
VERDICTS: Mapping[Ground, bool | None] = {
    Ground.COMPLETE: True,
    Ground.PARTIAL: True,
    Ground.LOOSE: True,
    Ground.APART: True,
    Ground.OPEN: None,
    Ground.UNPLACED: None,
    Ground.TIMED: None,
    Ground.FOREIGN: None,
    Ground.MENTIONED: False,
    Ground.NOTHING: False,
}


def ground(heard: Heard) -> Ground:
    """On what the answer to this message rests."""
    seen = heard.evidence
    if heard.accord is Accord.NONE:
        return Ground.OPEN
    if heard.requests and heard.accord is Accord.LOOSE:
        return Ground.APART
    if heard.requests:
        if not seen.is_plain:
            return Ground.LOOSE
        return Ground.COMPLETE if _is_complete(heard.requests) else Ground.PARTIAL
    if not seen.mentions:
        return Ground.NOTHING
    if seen.is_placed:
        return Ground.OPEN if seen.is_hedged else Ground.TIMED
    says_so = seen.is_plain and not seen.is_hedged and (seen.is_owned or heard.noise <= 1)
    return Ground.UNPLACED if says_so else Ground.MENTIONED


def _is_complete(requests: Sequence[Request]) -> bool:
    return all(request.date and request.start and request.end for request in requests)
