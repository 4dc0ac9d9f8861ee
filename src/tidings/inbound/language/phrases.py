"""What is wanted, in the words of squads: no crew, add, remove; and the words that take it back or leave it open.

Texts come from `spelling`: small letters and full forms. A phrase is plain if it names the matter itself
("no crew", "out of service"); otherwise ("down", "scratch") somebody's name has to stand with it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ..words import Action
from .pieces import Act

_SOME = r"(?:[a-z]+ ){0,2}?"
_MORE = r"(?:(?!but |and |or |if )[a-z]+ ){0,6}?"
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
    *_loose(Action.REMOVE, r"(?:should )?not be on the (?:schedule|calendar|board)"),
    *_plain(
        Action.NO_CREW,
        rf"(?:no|neg|zero|negative) {_SOME}(?:crews?|coverage|staffing|staff)(?! (?:chief|member))",
        rf"no luck {_MORE}(?:crews?|coverage)",
        rf"not {_MORE}(?:unable )?{_HEADS}",
        rf"(?:unable|not able) to {_SOME}(?:crew|cover|staff|field|respond|run)",
        rf"without {_SOME}(?:crews?|coverage|staff)",
        r"(?:lost|lacks?|lacking|missing) (?:our|a|the|their|its|my) (?:[a-z]+ )?crew",
        r"un(?:covered|staffed|crewed|manned)",
        r"out of service",
        r"neither {0}{1}".format(r"(?:[a-z0-9]+ ){0,6}?", _HEADS),
        rf"(?:needs?|needing|in need of) {_SOME}(?:coverage|a crew)",
    ),
    Phrase(
        rf"needs?(?= (?:[a-z0-9:-]+ ){{0,4}}?cover(?:ed|ing)?\b)",
        Act(Action.NO_CREW, True, "", absorbs=True),
    ),
    *_loose(
        Action.NO_CREW,
        r"(?:nobody|zero people|no people|no drivers?|no emts?|not enough (?:people|members|crew)|no members?)",
        r"not have (?:anybody|enough|people|a driver|an? emt)",
        rf"can not (?:{_SOME})(?:make it|make|be there|come|run|respond|ride|take|do)",
        r"(?:fell|falling|fallen) (?:through|apart)",
        r"called out|call(?:ed)? off",
        r"(?:lost|lacks?|lacking) (?:our|a|the|their) driver",
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
        rf"(?:can|will|able to|happy to) {_YES}(?:do|take|pick up|run|stay on|ride|work|handle|help)(?! it\?)",
        r"count us in",
        r"(?:(?<=we )are|(?<=all )|(?<=\d )is) (?:good|in|on|set)(?= (?:for|from|on|\w*day|tonight|tomorrow|\d))",
        r"(?:have|has|got) (?:somebody|people|folks|a driver|a full)",
        r"available",
        r"stay(?:ing)? on",
    ),
    *_loose(
        Action.REMOVE,
        r"remov(?:e|ing)",
        r"rm(?= )",
        r"scratch",
        r"tak(?:e|ing)(?= (?:\S+ ){1,3}off\b)",
        rf"pull(?= {_OWNER} (?:\d+ )?(?:off|from|out)\b)",
        rf"drop(?= {_OWNER}\b)",
        r"delet(?:e|ing)",
        rf"cancel(?= {_OWNER}\b)",
        rf"strike(?= {_OWNER}\b)",
        r"clear(?= (?:our|us|\d+)\b)",
    ),
    Phrase(
        r"(?:do|does|are|is|can|will) not(?= either)?(?= ?(?:[.,;!\n]|$))", Act(None, False, "", turns=True)
    ),
    Phrase(r"(?:is|are) (?:all )?(?:fine|ok|okay|alright|good)(?= ?(?:[.,;!\n]|$))", Act(None, True, "")),
)

# A sentence that speaks of what was, of what may be, or of what another said already, asks for nothing.
_PAST = re.compile(
    r"\b(?:yesterday|last (?:night|week|weekend|month|year|time|(?:mon|tues|wednes|thurs|fri|satur|sun)day)|ago"
    r"|had|was|were|did|covered for)\b"
)
_AHEAD = re.compile(r"\b(?:will|going to)\b")
_OPEN = re.compile(
    r"\b(?:if|unless|maybe|might|may|perhaps|possibly|probably|hope|hoping|hopefully|wish|not sure|unsure"
    r"|try(?:ing)?|working on|looking for|let (?:me|us)|let you know|will know|will see|see if|stand by|waiting"
    r"|whether|thinking|think)\b"
)
_SURE = re.compile(r"\bnot think\b|\bno crew,? (?:still )?looking\b|\blooking for coverage\b")
_TOLD = re.compile(
    r"\b(?:thanks? (?:you )?\d* ?for|thank you|glad|sorry to hear|noted|copy|copy that|received|got it|i see|looks like|too bad"
    r"|good to see|(?:calendar|page|board|schedule|bot|it) (?:says|shows|said)|ok so|always|rule|policy|example"
    r"|every (?:night|day|week)|(?:nights|weekends|weekdays|it is|is) (?:are )?hard|no worries|must|should be posted"
    r"|when (?:a|you)|please (?:post|check|call|bring))\b"
)
_QUESTION = re.compile(
    r"^(?:\W*(?:hey|hi|ok|so|and|but|also|q|guys|all|@\w+)\W+)*(?:who|what|when|where|why|how|which|whose|is|are|am|do|does"
    r"|did|has|have you|can|could|would|will|should|any|anybody|shall)\b(?! not\b)"
)
_ASKED_FOR = re.compile(
    r"\b(?:can|could|would|will) (?:you|somebody|anybody) (?:please |mind |kindly )?"
    r"(?:add|adding|put|putting|remov|tak|scratch|delet|cancel|mark|sign|drop|pull|strike|clear)|\bplease\b"
)
_THINGS = re.compile(
    r"\b(?:radios?|pagers?|ambulance|truck|rig|unit|phones?|internet|server|system|computer|site|page|line|lights?|heater|door"
    r"|car|road|power|insurance|store|stock|price|meeting|training|class|drill|party|dinner|lunch|list|order|film|trash)\b"
)


class Mood(NamedTuple):
    """How a sentence is meant."""

    is_past: bool
    is_open: bool
    is_told: bool
    is_question: bool
    about_things: bool

    @property
    def asks_nothing(self) -> bool:
        """Whatever it names, nothing is to be done about it."""
        return self.is_past or self.is_open or self.is_told or self.is_question


def mood(sentence: str, *, ends_asking: bool) -> Mood:
    """How a sentence is meant, by its words and its question mark."""
    is_question = (ends_asking or bool(_QUESTION.match(sentence))) and not _ASKED_FOR.search(sentence)
    return Mood(
        is_past=bool(_PAST.search(sentence)) and not _AHEAD.search(sentence),
        is_open=bool(_OPEN.search(sentence)) and not _SURE.search(sentence),
        is_told=bool(_TOLD.search(sentence)),
        is_question=is_question,
        about_things=bool(_THINGS.search(sentence)),
    )
