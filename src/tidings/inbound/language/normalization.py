"""Normalizes a text: lower case, full forms ("won't" is "will not"), plain dashes, corrected typos."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from .numbers import HOUR_RULES, spelled_out
from .pattern_literals import required_literals
from .tables import rewrites
from .typos import correct_typo

LONGEST = 2_000
"""The number of characters that are read; no request is longer."""

_MARKS = str.maketrans({"’": "'", "‘": "'", "`": "'", "“": '"', "”": '"', "–": "-", "—": "-", "−": "-", "‑": "-"})
_Rules = tuple[tuple[re.Pattern[str], str, tuple[str, ...]], ...]


def _compiled(*tables: tuple[tuple[str, str], ...]) -> _Rules:
    return tuple((re.compile(pattern), full, required_literals(pattern)) for table in tables for pattern, full in table)


_LETTERS = _compiled(rewrites("contraction"), rewrites("short"))
_POLITE = _compiled(rewrites("polite"), rewrites("empty"))
_MEANT = _compiled(HOUR_RULES, rewrites("worded"), rewrites("said"))
_WORD = re.compile(r"[a-z]{3,}")
_PICTURE = re.compile(r"[\U0001F000-\U0001FAFF\u2600-\u27BF\uFE0F\u200D]+")

_NO_CREW = re.compile(r"🚑 ?[❌🚫⛔]|[❌🚫⛔] ?🚑")
_PICTURE_ENDS = re.compile(r"(?<=[a-z!]) ?[\U0001F000-\U0001FAFF\u2600-\u27BF\uFE0F\u200D]+ ?(?=[A-Z])")


@lru_cache(256)  # each line is normalized several times
def normalize(text: str) -> str:
    """Return the text as the scanner expects it; line breaks stay, other whitespace is collapsed."""
    plain = unicodedata.normalize("NFKC", text[:LONGEST]).translate(_MARKS)
    plain = _NO_CREW.sub(" no crew ", plain)
    plain = _PICTURE.sub(" ", _PICTURE_ENDS.sub(". ", plain)).lower()
    plain = _WORD.sub(lambda found: correct_typo(found.group()), plain)
    plain = spelled_out(_replaced(plain, _LETTERS))
    plain = _replaced(without_courtesies(_tidied(plain)), _MEANT)
    return _tidied(plain)


def without_courtesies(text: str) -> str:
    """Remove greetings, wishes, thanks and excuses: "merry christmas" is not a date."""
    return _replaced(text, _POLITE)


def _replaced(text: str, rules: _Rules) -> str:
    for pattern, full, pieces in rules:
        if not pieces or any(map(text.__contains__, pieces)):
            text = pattern.sub(full, text)
    return text


def _tidied(text: str) -> str:
    """Collapse whitespace and drop empty lines."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    return "\n".join(line for line in lines if line)
