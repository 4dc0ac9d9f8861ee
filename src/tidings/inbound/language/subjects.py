"""Detects subjects that are not a squad: a town, another department, a person."""

from __future__ import annotations

import re

from .tables import words

_VERBS = (
    r"(?:has|have|had|needs?|got|gets|is|are|will|can|could|does|do|would|lacks?|goes|went|wants?|found"
    r"|lost|requires?"
    r"|requests?|covers?|covered|covering)"
)
_ADVERBS = (
    r"(?:also|just|still|now|again|really|already|currently|only|been|be|going|to|not|got|there|a|the|all"
    r"|never)"
)
_BEFORE = re.compile(rf"(?:^|[ ,;(-])([a-z'&]+) {_VERBS}(?: {_ADVERBS})*$")
_VERB_FIRST = re.compile(rf"{_VERBS}\b")
_LAST = re.compile(rf"(?:^|[ ,;(-])([a-z'&]+)(?: {_ADVERBS})*$")
_ANOTHERS = re.compile(
    r"\b(?:my|his|her|their|your) (?!whole |entire |usual |regular |full )[a-z]+ (?:squad|department"
    r"|company|station|service|agency"
    r"|crew)\b"
)
_DAYS = re.compile(
    r"(?:mon|tue|wed|thu|fri|sat|sun|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|today|tonight"
    r"|tomorrow|week|morning"
    r"|afternoon|evening|night|overnight|day|noon|midnight|am|pm|hrs|hours|christmas|thanksgiving"
    r"|easter|eve|halloween)"
)
_NOBODYS = words("no_subject")


def has_strange_subject(sentence: str, act: str) -> bool:
    """Return whether the subject of the act is a name that is not a squad."""
    if _ANOTHERS.search(sentence):
        return True
    place = sentence.find(act)
    before = sentence[: max(place, 0)].rstrip()
    found = (_LAST if _VERB_FIRST.match(act) else _BEFORE).search(before)
    return found is not None and found[1] not in _NOBODYS and not _DAYS.match(found[1])
