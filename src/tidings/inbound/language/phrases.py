"""What is wanted, in the words of squads: no crew, add, remove; and the words that leave it open.

Texts come from `spelling`: small letters and full forms. A phrase is plain if it names the matter itself
("no crew", "out of service"); otherwise ("down", "scratch") somebody's name has to stand with it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ..words import Action
from .pieces import Act

_SOME = r"(?:[a-z]+ ){0,2}?"
_MORE = r"(?:(?!but |and |or |if |no |not |nobody |needs? |lacks? |lose )[a-z]+ ){0,6}?"
_YES = r"(?:(?!not |never |no |hardly )[a-z]+ ){0,2}?"
_OWNER = r"(?:us|our|we|them|it|this|that|the|my|squad|sq|station|rescue|#?\d+)"
_HEADS = r"(?:crews?|coverage|cover(?:ed|ing)?|staff(?:ed|ing)?|crewed|in service|manned)"


class Phrase(NamedTuple):
    """A pattern for the scanner and what it says."""

    pattern: str
    act: Act


def _plain(action: Action, *patterns: str, takes_object: bool = False) -> list[Phrase]:
    return [Phrase(p, Act(action, True, "", takes_object=takes_object)) for p in patterns]


def _loose(action: Action, *patterns: str, absorbs: bool = False) -> list[Phrase]:
    return [Phrase(p, Act(action, False, "", absorbs=absorbs)) for p in patterns]


PHRASES: tuple[Phrase, ...] = (
    *_plain(
        Action.NO_CREW,
        r"no (?:(?!longer |shortage |lack |problem |issue |need |other )[a-z]+ ){0,2}?"
        r"(?:crews?|coverage|staffing|staff)"
        r"(?! (?:chief|member|(?:is |are |was )?(?:needed|required|necessary)))",
        rf"no luck {_MORE}(?:crews?|coverage)",
        rf"not (?!only |just ){_MORE}{_HEADS}",
        rf"(?:unable|not able) to {_SOME}(?:crew|cover|staff|field|respond|run)",
        rf"without {_SOME}(?:crews?|coverage|staff)",
        r"(?:lost|lacks?|lacking|missing) (?:our|a|the|their|its|my) (?:[a-z]+ )?crew",
        r"un(?:covered|staffed|crewed|manned)",
        r"out of service",
        rf"neither (?:[a-z0-9]+ ){{0,6}}?{_HEADS}",
        rf"(?:needs?|needing|in need of) {_SOME}(?:coverage|a crew)",
    ),
    Phrase(
        r"needs?(?= (?:[a-z0-9:-]+ ){0,4}?cover(?:ed|ing)?\b)",
        Act(Action.NO_CREW, True, "", absorbs=True),
    ),
    *_loose(
        Action.NO_CREW,
        r"nobody|no (?:people|drivers?|members?)",
        r"not have (?:anybody|enough|people|a driver|an? emt)",
        rf"can not (?:{_SOME})(?:make it|make|be there|come|run|respond|ride|take|do)",
        r"(?:fell|falling|fallen) (?:through|apart)",
        r"called out|call(?:ed)? off",
        r"can not(?! [a-z])",
        r"down(?! (?:to|the|there|with|on|here)\b)",
        r"out(?! (?:of|on|at|to|there|with|in|here|for a)\b)",
    ),
    *_loose(Action.ADD, rf"put(?:ting)?(?= {_OWNER} (?:\d+ )?down (?:for|on))", absorbs=True),
    *_plain(
        Action.ADD,
        r"(?:have|has|having|got|get|find|found|with|picked up|secured|arranged|lined up|provide|field|run)"
        r" (?:(?!no |not )[a-z]+ ){0,3}?(?:crews?|coverage)(?! (?:chief|member|meeting))",
        r"crews? (?:is |are )?(?:now )?(?:confirmed|set|ready|available|in place|complete)",
        r"(?:is|are|am) (?:now )?(?:confirmed|crewed)",
        r"(?:back )?in service",
        r"(?:fully )?(?:staffed|crewed)",
        r"covered(?! (?:in|with|for)\b)",
    ),
    *_plain(
        Action.ADD,
        rf"(?:can|will|could|able to|happy to|going to) {_YES}(?:cover|staff)",
        r"covering(?! for\b)",
        takes_object=True,
    ),
    *_loose(
        Action.ADD,
        r"add(?:ing)?",
        rf"put(?:ting)?(?= {_OWNER}(?: \d+)? (?:back )?(?:on|in)\b)",
        r"sign(?= (?:us|squad|sq|\d+|our)(?: \d+)? (?:up|on)\b)",
        rf"(?:can|will|able to|happy to) {_YES}(?:do|take|pick up|run|stay on|ride|work|handle|help)",
        r"count us in",
        r"(?:(?<=we )are|(?<=\d )is) (?:good|in|on|set)(?= (?:for|from|on|\w*day|tonight|tomorrow|\d))",
        r"(?:have|has|got) (?:somebody|people|folks|a driver|a full)",
        r"available",
        r"stay(?:ing)? on",
    ),
    *_loose(
        Action.REMOVE,
        r"remov(?:e|ing)",
        r"scratch",
        r"tak(?:e|ing)(?= (?:\S+ ){1,3}off\b)",
        rf"pull(?= {_OWNER} (?:\d+ )?(?:off|from|out)\b)",
        rf"drop(?= {_OWNER}\b)",
        r"delet(?:e|ing)",
        rf"cancel(?= {_OWNER}\b)",
    ),
    Phrase(
        r"(?:do|does|are|is|can|will) not(?= either)?(?= ?(?:[.,;!\n]|$))", Act(None, False, "", turns=True)
    ),
    Phrase(r"(?:is|are) (?:all )?(?:fine|ok|okay|alright|good)(?= ?(?:[.,;!\n]|$))", Act(None, True, "")),
)

# What speaks of the past, of a search or of what may be, asks for nothing. The first two spoil only their own
# clause ("Bob was hurt, so we have no crew"), the others all of it ("if Bob is late, we have no crew").
_EARLIER = re.compile(
    r"\b(?:yesterday|ago"
    r"|last (?:night|week|weekend|month|year|time|(?:mon|tues|wednes|thurs|fri|satur|sun)day))\b"
)
_WAS = re.compile(r"\b(?:had|was|were|did|covered for)\b")
_SUBJECT = re.compile(r"\b(?:we|our|they|i|\d+)\b")
_AHEAD = re.compile(r"\b(?:will|going to)\b")
_SEARCH = re.compile(
    r"\b(?:try(?:ing)?|working on|looking for|let (?:me|us)|let you know|waiting|stand by|see if|will see)\b"
)
_PERHAPS = re.compile(
    r"\b(?:if|unless|maybe|might|may|perhaps|possibly|probably|hope|hoping|hopefully|wish|not sure|unsure"
    r"|whether|think(?:ing|s)?|guess|believe|seems?|apparently|supposedly|according|will know)\b"
)
_TOLD = re.compile(
    r"\b(?:thanks?\b.{0,20}\bfor|appreciate|shout out|saw|asked why|glad (?:you|to (?:hear|see))"
    r"|sorry to hear|noted|copy|received|got it|i see|looks like|too bad|good to see|ok so|always|rule"
    r"|every (?:night|day|week)|(?:calendar|page|board|schedule|bot|it) (?:says|shows|said)|(?:are|is) hard"
    r"|no worries|must|when (?:a|you)|please (?:post|check|call|bring))\b"
)
_QUESTION = re.compile(
    r"^(?:\W*(?:hey|hi|ok|so|and|but|also|guys|all|@\w+)\W+)*(?:(?:who|what|when|where|why|how|which|whose|any|anybody)\b"
    r"|(?:is|are|am|do|does|did|has|have|can|could|would|will|should|shall)"
    r" (?:we|you|they|i|it|he|she|there|the|this|that|our|any\w*|some\w*|\d+|squad|to\w+|\w+day)\b)"
)
_ASKED_FOR = re.compile(
    r"\b(?:can|could|would|will) (?:you|somebody|anybody) (?:please |mind |kindly )?"
    r"(?:add|adding|put|putting|remov|tak|scratch|delet|cancel|mark|sign|drop|pull)|\bplease\b"
)
_THINGS = re.compile(
    r"\b(?:radios?|pagers?|ambulance|truck|rig|unit|phones?|internet|server|system|computer|site|page|line"
    r"|lights?|heater|door|car|road|power|insurance|store|stock|price|meeting|training|class|drill|party|dinner"
    r"|lunch|list|order|film|trash)\b"
)
_CLAUSE = re.compile(r"[,:()]| - |\b(?:so|because|since|but|then|as|and)\b")


class Mood(NamedTuple):
    """How a sentence is meant."""

    is_perhaps: bool
    is_told: bool
    is_question: bool
    about_things: bool

    @property
    def asks_nothing(self) -> bool:
        """Whatever it names, nothing is to be done about it."""
        return self.is_perhaps or self.is_told or self.is_question


def mood(sentence: str, *, ends_asking: bool) -> Mood:
    """How a sentence is meant, by its words and its question mark."""
    is_question = (ends_asking or bool(_QUESTION.match(sentence))) and not _ASKED_FOR.search(sentence)
    return Mood(
        is_perhaps=bool(_PERHAPS.search(sentence)),
        is_told=bool(_TOLD.search(sentence)),
        is_question=is_question,
        about_things=bool(_THINGS.search(sentence)),
    )


def is_idle(sentence: str, act: str) -> bool:
    """Does the clause of these words look back, or tell of a search that goes on?"""
    clauses = [clause for clause in _CLAUSE.split(sentence) if act in clause] or [sentence]
    return all(_is_past(clause, act) or _SEARCH.search(clause) for clause in clauses)


def _is_past(clause: str, act: str) -> bool:
    """Its subject did, or had; what another did before ("the road was closed") does not count."""
    if _AHEAD.search(clause):
        return False
    subjects = [found.start() for found in _SUBJECT.finditer(clause[: clause.find(act)])]
    return bool(_EARLIER.search(clause) or _WAS.search(clause, subjects[-1] if subjects else 0))
