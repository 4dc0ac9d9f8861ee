"""Long texts: refused when they are accepted, or cut into parts that the provider takes. Pure.

A part ends at an empty line, a line's end or a space, the first of these that leaves it at least half full;
nothing but that white space is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from ...model.errors import Invalid

MOST_PARTS = 10  # more is no message but a flood

_SEAMS = ("\n\n", "\n", " ")


class LongText(StrEnum):
    """What to do with a text that the provider would not take whole."""

    REFUSE = "refuse"
    SPLIT = "split"


def long_text(value: object) -> LongText:
    """The option as it is written; raises ValueError with what it must be."""
    if value not in (LongText.REFUSE, LongText.SPLIT):
        raise ValueError("it must be 'refuse' or 'split'")
    return LongText(str(value))


def check_text(text: str, most: int, rule: LongText, *, where: str) -> None:
    """Refuse a text that is over the limit; raises Invalid."""
    allowed = most if rule is LongText.REFUSE else most * MOST_PARTS
    if len(text) > allowed and (rule is LongText.REFUSE or len(parts(text, most)) > MOST_PARTS):
        remedy = f"Shorten it to {most} characters"
        if rule is LongText.REFUSE:
            remedy += ', or set long_text = "split" on the channel'
        problem = f"The text has {len(text)} characters; {where} takes {most}"
        raise Invalid(problem, remedy=remedy, field="text")


def parts(text: str, most: int) -> Sequence[str]:
    """The text in parts of at most `most` characters; one part, if it fits."""
    found = []
    while len(text) > most:
        at, width = _seam(text, most)
        found.append(text[:at])
        text = text[at + width :]
    return [*found, text] if text or not found else found


def _seam(text: str, most: int) -> tuple[int, int]:
    """Where to cut, and how much white space goes with the cut."""
    for seam in _SEAMS:
        at = text.rfind(seam, most // 2, most + len(seam))
        if at > 0:
            return at, len(seam)
    return most, 0
