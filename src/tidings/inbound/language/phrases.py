"""All phrases that state an action (phrases.tsv), in the order in which they are tried.

Texts are normalized: lower case and full forms. A phrase is plain if it is explicit ("no crew", "out of
service"); other phrases ("down", "scratch") count only with an owner.
"""

from __future__ import annotations

from typing import NamedTuple

from ..domain import ShiftAction
from .tables import rows
from .tokens import Act


class Phrase(NamedTuple):
    """A pattern for the scanner with its act."""

    pattern: str
    act: Act


def _phrase(action: str, properties: str, pattern: str) -> Phrase:
    act = Act(None if action == "none" else ShiftAction(action), False, "")
    return Phrase(pattern, act._replace(**dict.fromkeys(properties.split(), True)))


PHRASES = tuple(_phrase(*row) for row in rows("phrases.tsv"))
