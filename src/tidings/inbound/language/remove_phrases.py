"""Phrases for removing an entry from the calendar."""

from __future__ import annotations

from ..domain import ShiftAction
from .lexicon import OWN, OWNER, WHEN, WHO
from .tokens import Phrase, loose

_ENTRY = r"(?:shift|slot|entry|spot|sign-?up|night|day|morning|evening|afternoon|overnight)s?"
_GONE = (
    r"(?:taken (?:off|down)|removed|deleted|pulled|cancell?ed|dropped|scratched|struck|erased|crossed "
    r"off|withdrawn|released"
    r"|axed|off)"
)
_OTHERWISE = (
    r"(?!drop |tick |piss |see |hold |call |cut |show |tell |send |ward |fend |pay |let |get |with |for "
    r"|of |to |from |and )"
)
_OURS = rf"(?:our|squad|\d\d|its|their)(?: \S+){{0,4}}? {_ENTRY}"

NOT_MEANT: tuple[Phrase, ...] = tuple(
    loose(
        ShiftAction.REMOVE,
        r"(?:should not|not supposed to|not meant to|no longer) be (?:up there|on there|on the (?:calendar"
        r"|schedule|board)|up|on|listed)",
        r"(?:do|does|will|no) (?:not|longer) (?:need|want)(?= (?:(?:that|the|our"
        rf"|this)\b[^.,;!?\n]{{0,30}} {_ENTRY}|{_OURS}|it)\b)",
    )
)
REMOVE: tuple[Phrase, ...] = (
    *loose(
        ShiftAction.REMOVE,
        r"tak(?:e|ing)(?! (?:the|a|an|some|next) (?:day|night|weekend|week|shift|evening|morning|time) "
        r"off)(?= (?:\S+ ){1,6}(?:off|down|away)\b)",
        absorbs=True,
    ),
    *loose(
        ShiftAction.REMOVE,
        r"remov(?:es?|ing|als?)|erases?|eras(?:ing)|unschedule|withdraw(?:s|ing|als?)?|nix|retract"
        r"|rescind|void|yank"
        r"|strike(?! that ?(?:[,.]|$))"
        r"|unbook|unlist|relinquish(?:ing)?|cancellations?(?= (?:for|of))|deletions?",
        r"scratch(?! that ?(?:[,.]|$))",
        r"(?:wants?|needs?|like) (?:us|them|squad \d+|\d\d|our name|their name) (?:to be )?off",
        rf"tak(?:e|ing) (?:down|off)(?= (?:for )?(?:{OWN}|the|{WHEN}))",
        r"(?:pull|cross|get|bump|knock|back|strike|clear|wipe|kick|boot"
        rf"|drop)(?! it off)(?= {OWNER} (?:\S+ ){{0,2}}?(?:off|from|out|of)\b)",
        r"(?:pull(?:ing)?|drop(?:ping)?(?! it off)|kill|cancel(?:s|l?ing)?(?: for)?|undo|revert|axe"
        r"|forget|ditch(?:ing)?|trash|scrap"
        rf"|release|free up|give back|giv(?:e|ing) up|surrender(?:ing)?|hand back|dump)(?= (?:{OWNER}"
        r"|no|its)\b)(?! us an? )",
        rf"(?:lose|free)(?= {_OURS})",
        rf"(?:pull|drop|kill|cancel|undo|axe|ditch|nix|scrap)(?= (?:on )?{WHEN})",
        r"(?:excuse|relieve|free|release)(?= (?:us|our)\b(?: \S+){0,3}? (?:from|of)\b)",
        r"stop (?:saying|showing|listing)(?: that)? (?:we are|us|\d\d is|\d\d)(?: as)?(?: on)?",
        r"removal from the (?:schedule|calendar|board)|scrub|expunge|zap(?= (?:us|our|\d))",
        r"get(?:ting)? rid of|un-?sign(?:ing)?|let(?:ting)? go of",
        r"(?:back(?:ing)?|pull(?:ing)?|bow(?:ing)?|drop(?:ping)?|get(?:ting)?|opt(?:ing)?) out of"
        rf"(?= (?:our|that|the|this|{WHEN}))",
        r"(?:want|need|like|would like) (?:to (?:get|be) )?out of(?= (?:our|that|the|this)\b)",
        rf"(?:have|get|see|like|want|need)(?= (?:{WHO}|our|the|that)(?: \S+){{0,6}}? {_GONE}\b)",
        rf"{_OTHERWISE}[a-z]+(?= (?:us|squad \d+|\d\d) off\b)",
        rf"clear(?= {OWN}\b)",
        r"(?:no longer|not) (?:doing|taking)(?= (?:\S+ ){1,6}any ?more)",
        r"delet(?:e|ing)",
        r"(?:needs? to|has to|have to|must|should|can|could|to) (?:come|go|get|be) off(?! (?:to|the "
        r"(?:phone|road|hook))\b)",
        r"(?:(?<=we )|(?<=\d ))come off",
        rf"(?:be|get|getting|being) {_GONE}(?! (?:to|the (?:phone|road|hook))\b)",
        r"(?:taken off|removed|deleted)(?= please)",
    ),
)
