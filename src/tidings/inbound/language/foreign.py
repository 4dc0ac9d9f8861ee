"""Whether a text is in words that the rules could know at all: another script or another language is not."""

from __future__ import annotations

import re
import unicodedata

_FEWEST = 4  # words, or letters, from which one can tell
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_COMMON = frozenset({
    "a", "about", "after", "again", "all", "also", "am", "an", "and", "any", "anybody", "anyone", "are",
    "as", "at", "back", "be", "been", "but", "by", "can", "can't", "cannot", "come", "could", "day",
    "did", "do", "does", "doing", "don't", "down", "for", "from", "get", "give", "go", "going", "good",
    "got", "had", "has", "have", "he", "hello", "her", "here", "hey", "hi", "him", "his", "how", "i",
    "i'd", "i'll", "i'm", "i've", "if", "in", "is", "it", "it's", "its", "just", "know", "let", "like",
    "look", "make", "many", "may", "me", "more", "much", "my", "need", "new", "no", "nobody", "none",
    "not", "now", "of", "off", "ok", "okay", "on", "one", "only", "or", "our", "out", "over", "please",
    "put", "right", "said", "say", "see", "she", "should", "show", "so", "some", "sorry", "still",
    "take", "tell", "than", "thank", "thanks", "that", "that's", "the", "their", "them", "then", "there",
    "they", "this", "those", "to", "today", "tomorrow", "tonight", "too", "until", "up", "us", "use",
    "very", "want", "was", "we", "we'll", "we're", "we've", "well", "were", "what", "what's", "when",
    "where", "which", "who", "who's", "why", "will", "with", "won't", "work", "would", "yes",
    "yesterday", "you", "you're", "your", "yours", "add", "cover", "coverage", "covered", "covering",
    "crew", "morning", "night", "remove", "shift", "shifts", "squad",
})  # fmt: skip
"""Hardly an English sentence has none of them; of 6,800 messages that were none of the rules' matter, 12."""


def is_foreign(text: str) -> bool:
    """Mostly in other letters than Latin ones, or in several words none of which is a common English one."""
    letters = [char for char in text if char.isalpha()]
    strange = sum(not unicodedata.name(char, "").startswith("LATIN") for char in letters)
    if strange >= _FEWEST and 2 * strange > len(letters):
        return True
    words = [word.replace("’", "'") for word in _WORD.findall(text.lower())]
    return len(words) >= _FEWEST and _COMMON.isdisjoint(words)
