"""Corrects typing errors."""

from __future__ import annotations

from functools import lru_cache

from .tables import words

_LONG = words("correct")
_SURE = 5
"""Shorter words are not corrected: one letter makes another word ("crew", "crow")."""
_OTHERS = words("not_a_typo")
_SHORT = frozenset({"crew", "take", "have", "need", "from"})
_NAMES = frozenset({"ned", "tak", "crews", "need", "needs", "taken", "takes", "haven", "creed", "farm"})


@lru_cache(maxsize=4_096)
def correct_typo(word: str) -> str:
    """Return the known word that differs by one typing error, or the word itself."""
    if len(word) <= _SURE and word not in _NAMES and word not in _SHORT:
        short = next((known for known in sorted(_SHORT) if _is_short_slip(word, known)), None)
        if short is not None:
            return short
    if len(word) < _SURE or word in _LONG or word in _OTHERS or word.removesuffix("s") in _LONG:
        return word
    return next((known for known in sorted(_LONG) if word[0] == known[0] and _is_slip(word, known)), word)


def _is_short_slip(word: str, known: str) -> bool:
    """Return whether letters are swapped or doubled, or a vowel is missing, which makes no other word."""
    if sorted(word) == sorted(known):
        return _is_slip(word, known) and word[0] == known[0]
    if len(word) == len(known) + 1:
        return any(word == known[:i] + known[i] + known[i:] for i in range(len(known)))
    return any(word == known[:i] + known[i + 1 :] for i in range(1, len(known)) if known[i] in "aeiou")


def _is_slip(word: str, known: str) -> bool:
    """Return whether one letter is extra, missing or wrong, or two are swapped."""
    if abs(len(word) - len(known)) > 1:
        return False
    same = next((i for i, pair in enumerate(zip(word, known, strict=False)) if pair[0] != pair[1]), len(known))
    rest, wanted = word[same:], known[same:]
    swapped = wanted[1:2] + wanted[:1] + wanted[2:]
    return rest[1:] == wanted or rest == wanted[1:] or rest[1:] == wanted[1:] or rest == swapped
