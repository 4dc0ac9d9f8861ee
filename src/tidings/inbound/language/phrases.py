"""What is wanted, in the words of squads: no crew, add, remove; and the words that leave it open.

Texts come from `spelling`: small letters and full forms. A phrase is plain if it names the matter itself
("no crew", "out of service"); otherwise ("down", "scratch") somebody's name has to stand with it.
"""

from __future__ import annotations

from typing import NamedTuple

from ..words import Action
from .pieces import Act

_SOME = r"(?:[a-z]+ ){0,2}?"
_MORE = r"(?:(?!but |and |or |if |no |not |nobody |needs? |lacks? |lose )[a-z]+ ){0,6}?"
_YES = r"(?:(?!not |never |no |hardly |you |somebody |anybody |they |he |she )[a-z]+ ){0,2}?"
_OWNER = r"(?:us|our|we|them|it|this|that|the|my|squad|sq|station|rescue|#?\d+)"
_WHO = r"(?:us|our (?:squad|crew|name)|them|squad|sq|station|rescue|#?\d\d)"
_OWN = r"(?:us|our|squad|sq|station|rescue|#?\d\d)"
_THING = r"(?:it|that|this|one|them|those|that one|this one|the shift|that shift)"
_HEADS = r"(?:crews?|coverage|cover(?:ed|ing)?|staff(?:ed|ing)?|crewed|in service|manned)"
_RIG = r"(?:ambulance|rig|truck|bus|unit|squad car)"
_TEAM = r"(?:crews?|coverage|team)"
_SOMEBODY = (
    r"(?:somebody|anybody|another squad|any (?:other )?squads?|other squads?|one of (?:the|you)(?: [a-z]+)?|"
    r"another (?:crew|station|town)|a (?:squad|neighbor|neighboring squad))(?: else)?"
)
_WEEKDAY = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:days?)?"
_WHEN = (
    rf"(?:(?:on |the |this |next |that |all |whole |both )*(?:{_WEEKDAY}|today|tonight|tomorrow|weekend"
    r"|morning"
    r"|afternoon|evening|nights?|days?|overnight|christmas|thanksgiving|easter|halloween|new years|24 hours"
    r"|\d{1,2}/\d{1,2}|\d{1,2}(?:st|nd|rd|th)|\d{4}|\d{1,2}(?:[ap]m?)?(?: ?- ?|to )\d"
    r"|(?:jan|feb|mar|apr|may|june?|july?|aug|sep|oct|nov|dec)[a-z]* \d)\b)"
)
_AGAIN = r"(?:now |back |all |both |still |also |definitely |again )?"


class Phrase(NamedTuple):
    """A pattern for the scanner and what it says."""

    pattern: str
    act: Act


def _plain(action: Action, *patterns: str, takes_object: bool = False) -> list[Phrase]:
    return [Phrase(p, Act(action, True, "", takes_object=takes_object)) for p in patterns]


def _loose(action: Action, *patterns: str, absorbs: bool = False) -> list[Phrase]:
    return [Phrase(p, Act(action, False, "", absorbs=absorbs)) for p in patterns]


def _echo(action: Action, *patterns: str) -> list[Phrase]:
    """ "54 has it": the hours are those that were said before."""
    return [Phrase(p, Act(action, False, "", echoes=True)) for p in patterns]


_ASKS_FOR_COVER = (
    rf"(?:(?:can|could|would|will|is|are|does|please find|need|needs) )?(?:there )?{_SOMEBODY}"
    r"(?: (?!know|hear|heard|see|seen|tell|told|remember|not|no|if|my|me|was)[a-z]+){0,5}?"
    r" (?:cover(?:ing)?|tak(?:e|ing)|pick(?:ing)? up|grab(?:bing)?|handl(?:e|ing)|want|spare|fill in|step in)"
    rf"(?= (?:\S+ ){{0,4}}?{_OWN}\b)",
    r"who (?:can|could|will|would|wants? to|is able to) (?:cover|take|pick up|grab)(?= (?:for )?(?:us"
    r"|our)\b)",
    r"(?:please|kindly|can you|could you|would you)(?: please| kindly)? (?:cover"
    rf"|fill in for)(?= (?:for )?{_OWN}\b)",
    rf"(?:need|needs|needing|looking for|in need of|could use|want) (?:{_SOMEBODY}|help|a hand)"
    r"(?: (?:to|with|in))? (?:cover(?:ing)?|coverage|fill(?:ing)?)",
)
_NO_CREW = (
    *_plain(
        Action.NO_CREW,
        *_ASKS_FOR_COVER,
        r"(?:no|zero) (?:(?!longer |shortage |lack |problem |issue |need |other |full )[a-z]+ ){0,2}?"
        r"(?:crews?|coverage|staffing|staff)"
        r"(?! (?:chief|member|of (?:mine|his|hers|theirs)|(?:is |are |was )?(?:needed|required|necessary)))",
        r"no full crews?",
        rf"no longer (?!needs? |needing |requires? ){_MORE}{_HEADS}",
        rf"no luck {_MORE}(?:crews?|coverage)",
        rf"not (?!only |just |happy |thrilled |impressed |bad |much of ){_MORE}{_HEADS}",
        rf"not {_MORE}{_RIG} (?:out|on the road|rolling|crewed|staffed|going|in service)",
        rf"not {_MORE}(?:man|roll|field|staff|crew|run) (?:the |an? |our |any )?{_RIG}",
        rf"not {_MORE}(?:answer|take|respond to|handle|run)(?: any)? calls",
        r"(?:unable|not able|not be able) to (?:[a-z]+ ){0,3}?"
        r"(?:crew|cover|coverage|staff|field|respond|run|man|make it|help|do|take)",
        rf"without {_SOME}(?:crews?|coverage|staff)",
        r"(?:lost|lacks?|lacking|missing|losing|short|down) (?:our|a|the|their|its|my) (?:whole |entire "
        r"|full )?crew",
        r"(?:have|has|got) (?:nobody|no people|zero people)(?! to (?!ride|run|cover|crew|staff|drive))",
        r"un(?:covered|staffed|crewed|manned|filled)(?! (?:an?|some|my|his|her)\b)",
        r"(?:needs? to|must|have to|has to|going to) (?:be|go) out of service",
        r"(?:out of|not in) service|a crew short",
        r"please (?:assist|help)(?: us)?(?: out)? with (?:[a-z]+ )?coverage",
        r"out of commission|off the road|off[- ]?line|off the air",
        rf"neither (?:[a-z0-9]+ ){{0,6}}?{_HEADS}",
        r"(?:needs?|needing|in need of|requests?|requesting|request for|seeking|requires?|requiring"
        r"|looking for|wants?|asking for|could use)"
        rf" {_SOME}(?:coverage|cover|a crew)(?! (?:sheet|letter|charge|chief))",
        r"(?:coverage|cover) (?:is )?(?:needed|wanted|required|requested|request|please)",
        rf"crews?(?= (?:for |on )?{_WHEN}(?: \S+){{0,2}} (?:is |are )?(?:out sick|all sick|sick|bailed"
        r"|fell through|backed out|fell apart"
        r"|called out|cancell?ed)\b)",
        r"crews? (?:is |are |has |have |just |all )*(?:unavailable|not available|fell through"
        r"|fallen through|backed out"
        r"|bailed(?: out| on us)?|called out|called off|canceled|cancelled|dropped out|fell apart)",
    ),
    Phrase(
        r"needs?(?= (?:[a-z0-9:-]+ ){0,4}?cover(?:ed|ing)?\b)",
        Act(Action.NO_CREW, True, "", absorbs=True),
    ),
    *_loose(Action.NO_CREW, rf"count(?:ing)?(?= {_WHO}(?: \d+)? out\b)", absorbs=True),
    *_loose(
        Action.NO_CREW,
        r"nobody|(?:no|zero) (?:people|drivers?(?! licen)|members?|takers|manpower|personnel)",
        r"(?:(?:can|could|do|does|did) )?not (?:have|get|find|got|line up|round up) (?:anybody|enough"
        r"|people|a single person)"
        r"(?: (?:to|who can) (?:ride|run|cover|drive|crew|staff|work|come in))?",
        r"not have (?:a driver|an? emt)",
        r"no can do|crewless|needs? a (?:home|taker)",
        r"not enough (?:people|members|hands|volunteers|staff|drivers|emts)",
        r"will not be (?:around|up|responding|answering|running|on|in|here)"
        rf"(?= (?:on |for |from |at )?{_WHEN})",
        r"(?:have|has|got) (?:nothing|zip|zilch|nada)(?= (?:for|on|at)\b)",
        rf"(?:can|will|could|would) not (?!take (?:us|our) )(?:{_SOME})(?:make it|make|be there|come|run"
        r"|respond|ride|take|do"
        r"|help|fill|field|swing|manage|work|pull off|commit)",
        r"(?:fell|falling|fallen) (?:through|apart)",
        r"called out|call(?:ed)? off",
        r"can not(?! [a-z])",
        r"(?:will not|not going to) (?:happen|work)|not happening|a no[- ]go|no[- ]go|a bust|a no(?= for)",
        r"(?:have|has|going|need) to (?:pass|bow out|sit out|stand down|drop out|back out|pull out"
        r"|bail)(?: on| of)?",
        r"standing down|shut(?:ting)? down|going dark",
        r"(?<!help )(?<!work )(?<!figure )(?<!find )(?<!check )down(?! (?:to|the|there|with|on|here)\b)",
        r"(?:(?<=we are )|(?<=\d is )|(?<=\d )|(?<=we will be )|(?<=\d will be ))(?:dark|empty|closed"
        r"|unavailable|vacant|toast"
        r"|short a crew)",
        r"unavailable|not available",
        r"(?<!help )(?<!work )(?<!figure )(?<!find )(?<!check )out(?! (?:of|on|at|to|there|with|in|here"
        r"|for a)\b)",
    ),
)
_ADD = (
    *_echo(
        Action.ADD,
        r"(?:(?<=\d )|(?<=we )|(?<=they ))(?:do |will |can |could )?(?:has|have|got|gets|take|takes|get"
        r"|cover|handle|do"
        rf"|run|grab|pick up|picking up|taking|covering) {_THING}(?= ?(?:[.,;!\n]|$|for|up))",
        rf"(?:(?<=\d )|(?<=we ))(?:can|will) (?:pick|step|jump|fill)(?: {_THING})?(?: up"
        r"| in)(?= ?(?:[.,;!\n]|$))",
        r"(?:(?<=\d )|(?<=we ))(?:can|will)(?= ?(?:instead ?)?(?:[.,;!\n]|$))",
        r"(?:(?<=\d )|(?<=we ))(?:do )?(?:have|has) one",
    ),
    *_loose(Action.ADD, rf"count(?= {_WHO}(?: \d+)? in\b)", absorbs=True),
    *_loose(Action.ADD, rf"put(?:ting)?(?= {_OWNER} (?:\d+ )?down (?:for|on))", absorbs=True),
    *_plain(
        Action.ADD,
        r"(?:have|has|having|got|get|find|found|with|picked up|secured|arranged|lined up|provide|field|run"
        r"|offer|rounded up|mustered"
        r"|(?:scraped?|pulled|put|cobbled|got|threw) (?:up|together))"
        rf" (?:(?!no |not |half |partial |part |most |third |skeleton )[a-z]+ ){{0,3}}?{_TEAM}"
        r"(?! (?:chief|member|meeting|room|shirts?|jackets?))",
        r"crews? (?:is |are )?(?:now |all )?(?:confirmed|set|ready|available|in place|complete|found"
        r"|secured|lined up"
        r"|good to go|yes|a go)",
        r"(?<=\d )crew on(?= (?:for|from|on|\w*day|tonight|tomorrow|\d))",
        r"crews? (?:is |are |will be )(?:on|in|good)(?= (?:for|from|on|\w*day|tonight|tomorrow|\d))",
        rf"crews?(?= (?:for |on )?{_WHEN}(?: \S+){{0,3}} (?:is |are )?(?:all )?(?:set|confirmed|ready|good"
        r"|lined up|found|yes)\b)",
        r"put (?:in )?(?:an?|our)(?: full| extra)? (?:crew|shift)",
        r"(?:can|will) (?:take|answer|run) calls",
        r"add(?:ing)? (?:an?|another|our)(?: full| extra| second)? (?:crew|shift)",
        r"(?:can|will|able to|could) (?:now |still |also )?(?:put|make|form|get|field|muster|provide)"
        r" (?:together )?(?:a|an|one)(?: full| extra)? crew",
        r"(?:agree[sd]?|offer(?:s|ed|ing)?) to (?:cover|take)",
        r"(?:yes|full|complete|confirmed) crews?(?! (?:at|in|dinner|meeting|photo|picture|of)\b)",
        r"(?:is|are|am) (?:now )?(?:confirmed|crewed)",
        r"(?:back )?in service",
        r"(?<!short )(?<!short-)(?<!half )(?<!under )(?:fully )?(?:staffed|crewed|manned)",
        r"(?<!we )(?<!they )(?<!i )covered(?! (?:in|with|for|\d)\b)",
    ),
    *_plain(
        Action.ADD,
        rf"(?:can|will|could|able to|happy to|glad to|going to) {_YES}(?:cover(?! (?:for )?us\b)|staff|man)",
        r"(?:can|will|could|able to|happy to|glad to|going to) (?:still |now |also |fully )?crew",
        r"(?<!been )covering(?! for\b(?! \d| squad))|(?<=\d )covers|(?:will be|are|is) (?:staffing|manning)",
        takes_object=True,
    ),
    *_loose(
        Action.ADD,
        r"add(?:ing)?|be added|reinstate|restore",
        rf"put(?:ting)?(?= {_OWNER}(?: \d+)? (?:back )?(?:on|in|up)\b)",
        rf"(?:sign|mark|pencil|write)(?= {_WHO}(?: \d+)? (?:up|on|in|down|for|as)\b)",
        rf"(?:sign(?:ing)? up|list|enter|schedule|book|post|slot|show|log)(?= {_WHO}\b)",
        rf"(?:sign(?:ing)? up)(?= (?:for )?{_WHEN})",
        rf"(?:can|will|able to|happy to|glad to) {_YES}(?:do|take|pick up|run|stay on|ride|work|handle|help"
        r"|grab|answer)",
        rf"(?:(?<=we )are|(?<=\d )is) {_AGAIN}(?:good|in|on|set|up|ready)(?= (?:for|from|on|to go|{_WHEN}))",
        rf"(?:(?<=we )are|(?<=\d )is) {_AGAIN}(?:a (?:go|yes))(?= (?:for|on|{_WHEN}))",
        r"(?:(?<=we )are|(?<=\d )is|(?<=we )will be|(?<=\d )will be) (?:back )?(?:on|in"
        r"|good to go)(?= ?(?:[.,;!\n]|$))",
        r"(?:will be|are|is) (?:back )?up and running|be put (?:back )?(?:on|in|down)",
        rf"(?:good to go|all set)(?= for {_WHEN})",
        rf"(?:(?<=we )|(?<=\d )|(?<=have )|(?<=has ))filled(?= {_WHEN})",
        r"(?<=we )volunteer|(?<=\d )volunteers?(?: to (?:cover|take|do))?",
        rf"give(?= us {_WHEN})",
        rf"get(?= {_WHO}(?: \d+)? (?:back )?(?:on|in)\b)",
        rf"(?<=\d )(?:in|good|good to go)(?= ?(?:$|[.!,]|for {_WHEN}))",
        r"(?:(?<=we )(?:will be|are)|(?<=\d )(?:will be|is)) (?:on|in|taking|running|working"
        rf"|doing)(?= (?:for )?{_WHEN})",
        rf"(?<=\d )(?:taking|doing|running|picking up)(?= (?:for )?{_WHEN})",
        r"(?:have|has|got) (?:enough |the |some )?(?:somebody|people|folks|a driver|a full)(?= (?:for|on"
        r"|in|to))",
        r"(?:have|has|got) (?:somebody|people|folks|a driver|a full)",
        rf"(?:post|put|throw|stick) {_THING} (?:up|on|in)(?: the (?:board|calendar|schedule))?",
        r"(?:(?<=day )|(?<=night )|(?<=ing )|(?<=noon ))(?:yes|ok|okay|good|fine)(?= ?(?:[,.;]|$))",
        r"available",
        r"stay(?:ing)? on",
    ),
    Phrase(
        rf"(?:(?<=we )(?:have got|have|got)|(?<=\d )(?:has got|has|got|gets|picked up))(?= {_WHEN})"
        r"|got (?:you|it|this|them)(?= (?:for |on )?"
        rf"{_WHEN})",
        Act(Action.ADD, False, "", is_terse=True),
    ),
)
_REMOVE = (
    *_loose(Action.REMOVE, r"tak(?:e|ing)(?= (?:\S+ ){1,6}(?:off|down|away)\b)", absorbs=True),
    *_loose(
        Action.REMOVE,
        r"remov(?:e|ing)|erase|eras(?:ing)|unschedule|withdraw(?:ing)?|nix|retract|rescind|void|strike"
        r"|unbook|unlist",
        r"scratch",
        rf"tak(?:e|ing) (?:down|off)(?= (?:for )?(?:{_OWN}|the|{_WHEN}))",
        r"(?:pull|cross|get|bump|knock|back|strike|clear|wipe"
        rf"|drop)(?! it off)(?= {_OWNER} (?:\S+ ){{0,2}}?(?:off|from|out)\b)",
        r"(?:pull(?:ing)?|drop(?:ping)?(?! it off)|kill|cancel(?:l?ing)?|undo|revert|axe|forget"
        rf"|dump)(?= (?:{_OWNER}|no)\b)",
        rf"(?:pull|drop|kill|cancel|undo|axe)(?= {_WHEN})",
        r"get(?:ting)? rid of",
        rf"(?:have|get)(?= {_WHO}(?: \d+)? (?:taken (?:off|down)|removed|deleted|pulled)\b)",
        rf"clear(?= {_OWN}\b)",
        r"(?:no longer|not) (?:doing|taking)(?= (?:\S+ ){1,6}any ?more)",
        r"delet(?:e|ing)",
        r"(?:needs? to|has to|have to|must|should|can|to) (?:come|go|get) off",
        r"(?:be|get|getting|being) (?:taken (?:off|down)|removed|deleted|cancell?ed|pulled|dropped"
        r"|scratched|erased|withdrawn)",
        r"(?:taken off|removed|deleted)(?= please)",
        r"(?:should not|not supposed to|not meant to|no longer) be (?:up there|on there|on the (?:calendar"
        r"|schedule|board)|up|on|listed)",
    ),
)

PHRASES: tuple[Phrase, ...] = (
    *(phrase for phrase in _REMOVE if "not supposed" in phrase.pattern),  # before its "not" is read alone
    *_NO_CREW,
    *_ADD,
    *_REMOVE,
    Phrase(
        r"(?:do|does|are|is|can|will) not(?= either)?(?= ?(?:[.,;!\n]|$))", Act(None, False, "", turns=True)
    ),
    Phrase(r"(?:is|are) (?:all )?(?:fine|ok|okay|alright|good)(?= ?(?:[.,;!\n]|$))", Act(None, True, "")),
)
