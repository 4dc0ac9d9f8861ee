"""One spelling for many: small letters, full forms ("won't" is "will not"), plain dashes, usual slips."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from .courtesy import without_courtesies
from .needles import needles
from .numbers import spelled_out
from .slips import SAID, SHORT, WORDED, mended

LONGEST = 2_000
"""Characters that are looked at. No request is longer, and a wall of text is for a person."""

_MARKS = str.maketrans(
    {"’": "'", "‘": "'", "`": "'", "“": '"', "”": '"', "–": "-", "—": "-", "−": "-", "‑": "-"}
)
_SHIFTS = (
    "shifts?|nights?|days?|crews?|mornings?|afternoons?|evenings?|coverage|duty|slots?|spots?|tour|entry"
    "|hours"
)
_FULL = (
    (rf"\btoday's (?!(?:{_SHIFTS})\b)(?=[a-z])", ""),  # "as of today's count": no day of a shift
    (r"\b(?:can't|cant|cannot|can;t|canot|cannt|cnt|can nto|cna't)\b", "can not"),
    (r"\b(?:won't|wont|wo n't)\b", "will not"),
    (r"\bshan't\b", "will not"),
    (r"\b(?:dont|don;t|dnt)\b", "do not"),
    (r"\b(do|does|did|is|are|was|were|has|have|had|could|would|should|need)(?:n't|nt|n;t)\b", r"\1 not"),
    (r"\b(i|we|they|you)'?ll\b(?<!\bwell)(?<!\bill)", r"\1 will"),
    (r"\bill (?=(?:be|take|cover|do|drive|ride|run|bring|let|see)\b)", "i will "),
    (r"\b(we|they|you)'re\b|\b(they|you)re\b", r"\1\2 are"),
    (
        r"(^|[,;.!\n-] ?|\b(?:so|but|and|sorry|guys|all|folks|hey|that|because|unfortunately|yeah|ok) "
        r")were (?=(?:out|down"
        r"|short|looking?|lookin|not|gonna|going|unable|in|on|good|all|without|still|able|covering|taking"
        r"|fully|set"
        r"|available|back|dropping|pulling|standing|staffed|crewed|picking|running|full|no|at)\b)",
        r"\1we are ",
    ),
    (r"\b(i|we|they|you)'?ve\b", r"\1 have"),
    (r"\bwed (?=(?:appreciate|need|like|love|be|take|have|rather|prefer|want|really)\b)", "we would "),
    (r"\bthat'?ll\b", "that will"),
    (r"\b(i|we|they|you)'d (?=(?:signed|registered|been|put us|taken|posted|booked|planned)\b)", r"\1 had "),
    (r"\b(i|we|they|you)'d\b", r"\1 would"),
    (r"\b(?:i'm|im)\b", "i am"),
    (r"\b(who|what|where|there|it|that|here|he|she|crew)'s\b|\b(what|that|here)s\b", r"\1\2 is"),
    (r"\blet'?s\b", "let us"),
    (r"\b(nobody|no one|everybody|everyone|somebody)(?:'s|s)\b", r"\1 is"),
    (r"\b(\d\d)s\b", r"\1"),
    (r"\bnew year'?s\b", "new years"),
    (r"'s\b", ""),
)
_Rules = tuple[tuple[re.Pattern[str], str, tuple[str, ...]], ...]


def _compiled(*tables: tuple[tuple[str, str], ...]) -> _Rules:
    return tuple((re.compile(pattern), full, needles(pattern)) for table in tables for pattern, full in table)


_LETTERS = _compiled(_FULL, SHORT)
_MEANT = _compiled(WORDED, SAID)
_WORD = re.compile(r"[a-z]{3,}")
_PICTURE = re.compile(r"[\U0001F000-\U0001FAFF\u2600-\u27BF\uFE0F\u200D]+")

_NO_CREW = re.compile(r"🚑 ?[❌🚫⛔]|[❌🚫⛔] ?🚑")
_PICTURE_ENDS = re.compile(r"(?<=[a-z!]) ?[\U0001F000-\U0001FAFF\u2600-\u27BF\uFE0F\u200D]+ ?(?=[A-Z])")


@lru_cache(256)  # a line is looked at for several things
def spell(text: str) -> str:
    """The text as the scanner expects it; line ends stay, all other blanks are one."""
    plain = unicodedata.normalize("NFKC", text[:LONGEST]).translate(_MARKS)
    plain = _NO_CREW.sub(" no crew ", plain)
    plain = _PICTURE.sub(" ", _PICTURE_ENDS.sub(". ", plain)).lower()
    plain = _WORD.sub(lambda found: mended(found.group()), plain)
    plain = spelled_out(_replaced(plain, _LETTERS))
    plain = _replaced(without_courtesies(_tidied(plain)), _MEANT)
    return _tidied(plain)


def _replaced(text: str, rules: _Rules) -> str:
    for pattern, full, pieces in rules:
        if not pieces or any(map(text.__contains__, pieces)):
            text = pattern.sub(full, text)
    return text


def _tidied(text: str) -> str:
    """Lines without blanks at their ends, and one blank between words."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    return "\n".join(line for line in lines if line)
