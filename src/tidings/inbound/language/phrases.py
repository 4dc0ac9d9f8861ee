"""What is wanted, in the words of squads: no crew, add, remove; and the words that leave it open.

Texts come from `spelling`: small letters and full forms. A phrase is plain if it names the matter itself
("no crew", "out of service"); otherwise ("down", "scratch") somebody's name has to stand with it.
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
"""In the order in which they are tried: a "not" goes before what it denies."""
