"""Detects text in another script or language."""

from __future__ import annotations

import re
import unicodedata

_FEWEST = 4  # least number of words or letters for a decision
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_COMMON = frozenset({
    "about", "after", "again", "also", "and", "any", "anybody", "anyone", "are", "at", "back", "be",
    "been", "but", "by", "can", "can't", "cannot", "could", "day", "did", "do", "does", "doing", "don't",
    "down", "for", "from", "get", "give", "go", "going", "good", "got", "had", "have", "hello", "her",
    "here", "hey", "him", "his", "how", "i", "i'd", "i'll", "i'm", "i've", "if", "is", "it", "it's",
    "its", "just", "know", "let", "like", "look", "make", "many", "may", "more", "much", "my", "need",
    "new", "nobody", "none", "not", "now", "of", "off", "one", "only", "our", "out", "over", "please",
    "put", "right", "said", "say", "see", "she", "should", "show", "some", "sorry", "still", "take",
    "tell", "than", "thank", "thanks", "that", "that's", "the", "their", "them", "then", "there", "they",
    "this", "those", "to", "today", "tomorrow", "tonight", "too", "until", "up", "us", "very", "want",
    "we", "we'll", "we're", "we've", "well", "were", "what", "what's", "when", "where", "which", "who",
    "who's", "why", "will", "with", "won't", "work", "would", "yes", "yesterday", "you", "you're",
    "your", "yours", "add", "cover", "coverage", "covered", "covering", "crew", "morning", "night",
    "remove", "shift", "shifts", "squad",
})  # fmt: skip
"""Common English words; almost every sentence contains one."""
_SHARED = frozenset({
    "a", "all", "am", "an", "as", "come", "has", "he", "hi", "in", "me", "no", "ok", "okay", "on", "or",
    "so", "use", "was",
})  # fmt: skip
"""English words that also exist in other languages."""
_ELSEWHERE = frozenset({
    "bis", "das", "del", "der", "des", "die", "ein", "eine", "el", "els", "est", "et", "geen", "gli",
    "hay", "het", "il", "kein", "keine", "la", "las", "le", "les", "los", "ma", "mais", "não", "nem",
    "nicht", "niet", "nie", "niemand", "non", "nous", "para", "pas", "pero", "por", "pour", "que", "qui",
    "sem", "sin", "sind", "tenemos", "uhr", "um", "uma", "un", "una", "und", "une", "von", "voor",
    "vous", "wir", "y",
})  # fmt: skip
"""Words of other languages that do not exist in English."""


def is_foreign(text: str) -> bool:
    """Return whether a text is mostly non-Latin, or has several words but no common English one.

    It is true for 12 of 6,800 English lines that are not about shifts.
    """
    letters = [] if text.isascii() else [char for char in text if char.isalpha()]
    strange = sum(not unicodedata.name(char, "").startswith("LATIN") for char in letters)
    if strange >= _FEWEST and 2 * strange > len(letters):
        return True
    words = {word.replace("’", "'") for word in _WORD.findall(text.lower())}
    if len(words) < _FEWEST or words & _COMMON:
        return False
    return not words & _SHARED or bool(words & _ELSEWHERE)
