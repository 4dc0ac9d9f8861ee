"""One spelling for many: small letters, full forms ("won't" is "will not"), plain dashes, usual slips."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from .slips import SAID, SHORT, WORDED, mended

LONGEST = 2_000
"""Characters that are looked at. No request is longer, and a wall of text is for a person."""

_MARKS = str.maketrans(
    {"’": "'", "‘": "'", "`": "'", "“": '"', "”": '"', "–": "-", "—": "-", "−": "-", "‑": "-"}
)
_FULL = (
    (r"\b(?:can't|cant|cannot|can;t|canot)\b", "can not"),
    (r"\b(?:won't|wont)\b", "will not"),
    (r"\b(do|does|did|is|are|was|were|has|have|had|could|would|should)(?:n't|nt)\b", r"\1 not"),
    (r"\b(i|we|they|you)'?ll\b(?<!\bwell)(?<!\bill)", r"\1 will"),
    (r"\b(we|they|you)'re\b", r"\1 are"),
    (r"\b(i|we|they|you)'ve\b", r"\1 have"),
    (r"\b(i|we|they|you)'d\b", r"\1 would"),
    (r"\b(?:i'm|im)\b", "i am"),
    (r"\b(who|what|where|there|it|that|here|he|she|crew)'s\b", r"\1 is"),
    (r"\blet's\b", "let us"),
    (r"\bnew year'?s\b", "new years"),
    (r"'s\b", ""),
)
_RULES = tuple((re.compile(pattern), full) for pattern, full in (*_FULL, *SHORT, *WORDED, *SAID))
_WORD = re.compile(r"[a-z]{6,}")


@lru_cache(256)  # a line is looked at for several things
def spell(text: str) -> str:
    """The text as the scanner expects it; line ends stay, all other blanks are one."""
    plain = unicodedata.normalize("NFKC", text[:LONGEST]).lower().translate(_MARKS)
    plain = _WORD.sub(lambda found: mended(found.group()), plain)
    for pattern, full in _RULES:
        plain = pattern.sub(full, plain)
    lines = (" ".join(line.split()) for line in plain.splitlines())
    return "\n".join(line for line in lines if line)
