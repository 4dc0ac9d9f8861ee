"""The mood of a sentence: statement, question, possibility, condition, past, or another topic."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from .tables import alternatives

# The past, a search or a possibility is not a request. The first two affect only their own clause ("Bob was
# hurt, so we have no crew"), the others the whole sentence ("if Bob is late, we have no crew").
_EARLIER = re.compile(
    r"\b(?:yesterday|ago|used to"
    r"|last (?:night|week|weekend|month|year|time|(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*)"
    r"|back in (?:19|20)?\d\d)\b"
)
_WAS = re.compile(r"\b(?:had|ran|was(?! able to)|were(?! able to)|did|covered for)\b")
_SUBJECT = re.compile(r"\b(?:we|our|they|i|\d+)\b")
_AHEAD = re.compile(r"\b(?:will|going to)\b")
_SEARCH = re.compile(rf"\b(?:{alternatives('search')})\b")
_PERHAPS = re.compile(
    r"(?:^|[,;] )(?:were (?:we|i|they)|should (?:we|i|they|\d+)|suppose|in case)\b"
    rf"|\b(?:{alternatives('perhaps')})\b"
)
_TOLD = re.compile(rf"\b(?:{alternatives('told')})\b")
_QUOTED = re.compile(r'"[^"]{4,}"')
_QUESTION = re.compile(
    r"^(?:\W*(?:hey|hi|ok|so|and|but|also|guys|all|@\w+)\W+)*(?:(?:who|what|when|where|why|how|which|whose"
    r"|any|anybody)\b"
    r"|(?:is|are|am|do|does|did|has|have|can|could|would|will|should|shall)"
    r" (?:we|you|they|i|it|he|she|there|the|this|that|our|any\w*|some\w*|\d+|squad|to\w+|\w+day)\b)"
)
_ASKED_FOR = re.compile(alternatives("asked_for"))
_THINGS = re.compile(rf"\b(?:{alternatives('things')})\b")
_CLAUSE = re.compile(r"[,:()]| - |\b(?:so|because|since|but|then|as|and)\b")


_STAYS = re.compile(
    r"\b(?:keep|keeping|stays?|staying|remains?|unchanged|as is)\b"
    r"|\b(?:is|are) (?:still |all |just )?(?:fine|ok|okay|good|handled|right|correct|set|alright)\b"
    r"|\b(?:fine|ok|okay|good)(?: after all| as is| for now)?$"
)
_CONDITION = re.compile(r"\b(?:if|unless|suppose|in case|whether|were (?:we|i|they)|should (?:we|i|they|\d+))\b")
_ASKS_OTHERS = re.compile(
    r"^(?:\W*(?:hey|hi|ok|so|and|but|also|guys|all|please)\W+)*(?:can|could|would|will|is|any|need"
    r"|does)? ?(?:there )?"
    r"(?:somebody|anybody|any squad|another squad|other squads?|\d\d|any takers|who)\b"
)


class Mood(NamedTuple):
    """The mood of a sentence. Field names are features of the classifier: renaming them needs new weights."""

    is_perhaps: bool
    is_told: bool
    is_question: bool
    is_condition: bool
    about_things: bool

    @property
    def asks_nothing(self) -> bool:
        """Whether the sentence requests nothing."""
        return self.is_perhaps or self.is_told or self.is_question


@lru_cache(256)  # parser and classifier both ask
def mood(sentence: str, *, ends_asking: bool) -> Mood:
    """Return the mood of a sentence by its words and its question mark."""
    is_question = (ends_asking or bool(_QUESTION.match(sentence))) and not _ASKED_FOR.search(sentence)
    return Mood(
        is_perhaps=bool(_PERHAPS.search(sentence)),
        is_told=bool(_TOLD.search(sentence) or _QUOTED.search(sentence)),
        is_question=is_question,
        is_condition=is_condition(sentence),
        about_things=bool(_THINGS.search(sentence)),
    )


def stays(sentence: str) -> bool:
    """Return whether nothing should change: "we keep 0000-0600", "friday is fine"."""
    return bool(_STAYS.search(sentence))


def is_condition(sentence: str) -> bool:
    return bool(_CONDITION.search(sentence))


def asks_others(sentence: str) -> bool:
    """Return whether the sentence asks other people to do something."""
    return bool(_ASKS_OTHERS.match(sentence.strip()))


def is_aside(sentence: str, *, concludes: bool) -> bool:
    """Return whether the text is an aside; a condition is not, because it applies to its conclusion."""
    if concludes and is_condition(sentence):
        return False
    return mood(sentence, ends_asking=False).asks_nothing


def is_idle(sentence: str, act: str) -> bool:
    """Return whether the clause of the act is about the past or an ongoing search."""
    if _EARLIER.match(sentence):
        return True
    clauses = [clause for clause in _CLAUSE.split(sentence) if act in clause] or [sentence]
    return all(_is_past(clause, act) or _SEARCH.search(clause) for clause in clauses)


def is_of_things(sentence: str, act: str) -> bool:
    """Return whether the clause of the act is about radios, meetings and the like."""
    return any(_THINGS.search(clause) for clause in _CLAUSE.split(sentence) if act in clause)


def _is_past(clause: str, act: str) -> bool:
    """Return whether the clause is in the past; another subject ("the road was closed") does not count."""
    if _AHEAD.search(clause):
        return False
    subjects = [found.start() for found in _SUBJECT.finditer(clause[: clause.find(act)])]
    return bool(_EARLIER.search(clause) or _WAS.search(clause, subjects[-1] if subjects else 0))
