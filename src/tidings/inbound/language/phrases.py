"""All phrases that state an action (phrases.tsv), in the order in which they are tried.

Texts are normalized: lower case and full forms. A phrase is plain if it is explicit ("no crew", "out of
service"); other phrases ("down", "scratch") count only with an owner.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..domain import ShiftAction
from .tables import rows
from .tokens import Act


class Phrase(NamedTuple):
    """A pattern for the scanner with its act."""

    pattern: str
    act: Act


def _phrase(action: str, properties: str, pattern: str) -> Phrase:
    act = Act(None if action == "none" else ShiftAction(action), is_plain=False, written="")
    found: dict[str, Any] = dict.fromkeys(properties.split(), True)
    return Phrase(pattern, act._replace(**found))


PHRASES = tuple(_phrase(*row) for row in rows("phrases.tsv"))
