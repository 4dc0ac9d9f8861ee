"""All phrases, in the order in which they are tried.

Texts are normalized: lower case and full forms. A phrase is plain if it is explicit ("no crew", "out of
service"); other phrases ("down", "scratch") count only with an owner.
"""

from __future__ import annotations

from .add_phrases import ADD
from .lexicon import STOP
from .no_crew_phrases import NO_CREW
from .remove_phrases import NOT_MEANT, REMOVE
from .tokens import Act, Phrase

_OPEN = (
    Phrase(rf"(?:do|does|are|is|can|will) not(?= either)?{STOP}", Act(None, False, "", turns=True)),
    Phrase(
        r"(?:is|are) (?:all )?(?:fine|ok|okay|alright|good|covered already)(?: actually| already| now"
        rf"| though)?{STOP}",
        Act(None, True, ""),
    ),
    Phrase(rf"(?:(?<=\d )|(?<=[ap] )|(?<=[ap]m ))(?:ok|okay|fine|good|all set){STOP}", Act(None, True, "")),
)

PHRASES: tuple[Phrase, ...] = (*NOT_MEANT, *NO_CREW, *ADD, *REMOVE, *_OPEN)
"""A negation comes before what it negates."""
