"""The mood of a sentence: statement, question, possibility, condition, past, or another topic."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

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
_SEARCH = re.compile(
    r"\b(?:try(?:ing)?|working on|looking for(?! (?:coverage|cover|relief|another squad|mutual aid"
    r"|(?:somebody|anybody|a squad|any squad)(?: else)?"
    r" (?:to|who can|that can) (?:cover|take|handle|pick|grab|fill|do)))|let (?:me"
    r"|us)(?! (?:add|take|remove|put|scratch|cancel|drop))|let you know|waiting|wait with|hold off"
    r"|stand by|see if"
    r"|will see)\b"
)
_PERHAPS = re.compile(
    r"(?:^|[,;] )(?:were (?:we|i|they)|should (?:we|i|they|\d+)|suppose|in case)\b"
    r"|\b(?:if|unless|maybe|might|(?<!\d )(?<!of )(?<!you )may(?! \d)"
    r"|in case|(?<!we )(?<!\d )would need|would have|(?<!they "
    r")would take"
    r"|should (?:have|be (?:able"
    r"|good|covered|fine|ok|okay|in|on)\b)"
    r"|would be(?! (?:delighted|thrilled|honou?red|glad|happy|able|willing|pleased))|perhaps"
    r"|possibly|probably|hope|hoping|hopefully|wish(?! to)|not sure|unsure"
    r"|whether|pretty sure|fairly sure|assum(?:e|ing)|rather (?:have|be|see)|imagine|picture|(?<!not "
    r")supposed to (?:have|be)|think(?:ing|s)?|guess|believe|seems?|apparently|supposedly|according"
    r"|will know)\b"
)
_TOLD = re.compile(
    r"\b(?:thanks?\b.{0,20}\bfor|(?<!would )appreciate|shout out|saw|asked why|glad (?:you|to (?:hear|see))"
    r"|sorry to hear|noted|copy|received|got it(?! (?:covered|for|on|figured|sorted|done))|i see"
    r"|only thing|(?:was|were) going to|one more (?:emt|driver|person|member)|(?:needs?|needing"
    r"|looking for|missing|lacking|short|(?<!not )find) (?:just |only |still |us )?(?:an?|one|another"
    r"|one more"
    r"|a second|a third)"
    r" (?:more )?(?:emt|driver|rider|person|partner|crew chief|third|second|member|medic|attendant"
    r"|aide)(?!.{0,60}\b(?:no crew|out of service|can not|without a crew))|looks like (?:\d+ (?:is|are"
    r"|has)|they|you)|(?:delete|remove|cancel|clear|wipe) (?:all|every|everything|everybody)\b|only "
    r"(?:have|got) (?:an?|one"
    r"|half)|(?:emts?|drivers?) (?:but|and) no|no need|confirm(?:ing)? (?:that|\d)|(?<!.)(?:great|nice"
    r"|awesome|perfect|cool)(?=,)"
    r"|too bad|(?:nice|good|great|happy|lovely) to (?:see|have)|ok so (?:\d+|they|you|it is)|always"
    r"|rule|understood|roger|took it|could not have|covered us|as (?:usual|always)|i heard (?!from)"
    r"|they say|quote me|ended up"
    r"|that was (?:the|a|our|my|last)|(?:one|two|half|some) of us (?:can|could|are)"
    r"|how (?:we|to|a|do|does)|should (?:talk|discuss|think|consider|look|start|stop|try|really"
    r"|probably)|example"
    r"|instead of|just kidding|stats?:|percent|since (?:last|thanksgiving|christmas|new years|20\d\d"
    r"|january|february|march|april|june|july|august"
    r"|september|october|november|december|summer|spring|fall|winter|(?:mon|tues|wednes|thurs|fri|satur"
    r"|sun)day)"
    r"|every (?:night|day|week)|(?:calendar|page|board|schedule|bot|it) (?:says|shows|said)|(?:are|is) hard"
    r"|no worries|must(?! (?:go|be out|stand|drop|withdraw|cancel|pull))|when (?:an?|you|the|it|we)|(?:on"
    r"|every) (?:mon|tues|wednes|thurs|fri|satur|sun)days|every (?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|(?:somebody|rumou?r|they|word) (?:said|says|has it)|please (?:post(?! (?:it|us|them|that|this"
    r"|\d+)\b)(?! ?(?:[.,!]|$))|check|call|bring))\b"
)
_QUOTED = re.compile(r'"[^"]{4,}"')
_QUESTION = re.compile(
    r"^(?:\W*(?:hey|hi|ok|so|and|but|also|guys|all|@\w+)\W+)*(?:(?:who|what|when|where|why|how|which|whose"
    r"|any|anybody)\b"
    r"|(?:is|are|am|do|does|did|has|have|can|could|would|will|should|shall)"
    r" (?:we|you|they|i|it|he|she|there|the|this|that|our|any\w*|some\w*|\d+|squad|to\w+|\w+day)\b)"
)
_ASKED_FOR = re.compile(
    r"\b(?:can|could|would|will) (?:the|our) (?:calendar|board|schedule|page) (?:be|show|list|say|have)\b"
    r"|\b(?:can|could|would|will) (?:you|somebody|anybody) (?:please |mind |kindly )?"
    r"(?:add|adding|put|putting|remov|tak|scratch|delet|cancel|mark|sign|drop|pull|list|enter|post|cross"
    r"|erase)"
    r"|\b(?:can|could|would|will) (?:\S+ ){1,8}?(?:be|get) (?:taken|removed|deleted|added|put|cancel"
    r"|pulled)|\bplease\b"
    r"|\b(?:can|could|may|would) (?:we|i|\d\d|squad \d+) (?:please |all )?(?:come off|be (?:taken"
    r"|removed|deleted|added|put"
    r"|marked|listed|dropped|pulled|released)|get (?:off|taken|added|put|on)|have (?:our|that))"
    r"|(?:^|[,;.] ?)(?:so |and |then |just )?(?:add|put|remove|take|cancel|drop|pull|scratch|delete"
    r"|sign|list|mark) (?:us|our|\d\d"
    r"|squad|it)\b[^?]*$"
    r"|\b(?:cover(?:ing)?|tak(?:e|ing)|pick(?:ing)? up|grab(?:bing)?|handl(?:e|ing)|want|fill in)"
    r" (?:(?:for|up) )?(?:us|our)\b"
    r"|\b(?:somebody|anybody|any squad|another squad|\d\d) (?:[a-z]+ ){0,4}?"
    r"(?:cover|take|do|run|handle|pick up|grab) (?:\S+ ){0,4}?for (?:us|squad|\d\d)\b"
)
_THINGS = re.compile(
    r"\b(?:radios?|pagers?|ambulance|truck|rig|unit|phones?|internet|server|system|computer|site"
    r"|page(?! us)|line"
    r"|lights?|heater|door|car|road|power|insurance|store|stock|price|meeting|training|class|drill|party"
    r"|dinner"
    r"|lunch|(?<!off the )list(?! (?:us|squad|\d))|order|film|trash)\b"
)
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
    """Return whether the sentence is a condition."""
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
