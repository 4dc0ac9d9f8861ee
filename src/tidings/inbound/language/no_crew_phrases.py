"""Phrases for "no crew" and requests for coverage."""

from __future__ import annotations

from ..domain import ShiftAction
from .lexicon import HEADS, MORE, NEED, OWN, PEOPLE, RIG, SOME, SOMEBODY, STOP, TAKE, WHEN, WHO
from .tokens import Act, Phrase, loose, plain

_ASKS_FOR_COVER = (
    rf"(?:(?:can|could|would|will|is|are|does|please|please find|need|needs|if) )?(?:there )?{SOMEBODY}"
    r"(?: (?!know|hear|heard|see|seen|tell|told|remember|not|no|if|my|me|was)[a-z]+){0,5}?"
    rf" (?:{TAKE}|took|covered|picked up|stepped in|covers|takes)(?! (?:\S+ ){{1,5}}?(?:off"
    rf"|down)\b)(?= (?:\S+ ){{0,4}}?{OWN}\b)",
    r"who (?:can|could|will|would|wants? to|is able to) (?:cover|take|pick up|grab)(?= (?:for )?(?:us"
    r"|our)\b)",
    r"(?:please|kindly|can you|could you|would you)(?: please| kindly)? (?:cover|fill in for)(?= "
    rf"(?:for )?{OWN}\b)",
    r"(?:can|could|would|will)(?: squads?)? \d\d(?:(?: or|,| and)(?: squad)? \d\d)*(?: please| maybe| "
    r"possibly)?"
    rf" {TAKE}(?= (?:for )?(?:us|our)\b| (?:\S+ ){{1,5}}?for us\b)",
    rf"(?:need|needs|needing|looking for|in need of|could use|want) (?:{SOMEBODY}|help|a hand)"
    rf"(?: (?:to|with|in))? (?:cover(?:ing)?|coverage|fill(?:ing)?|jump in|step in|{TAKE})",
    r"(?:need|needs|needing|in need of|could use|looking for) (?:another|a different|some other) "
    r"(?:squad|crew)",
    rf"(?:need|needs|could use|looking for|seeking|in need of|request(?:ing)?|send|asking for) {SOME}"
    r"(?:relief|mutual aid|backup|back-up|a hand|assistance)(?= (?:for |on |from |at |again |with )*"
    rf"(?:{WHEN}|{OWN}))",
    r"(?:please|help(?: us)?|need to|must|kindly) (?:find|get|arrange|line up|send|provide) "
    rf"{SOME}(?:coverage|a crew|cover)",
)
_STATES = (
    r"(?:dark|empty|closed|unavailable|vacant|toast|short a crew|short(?= ?(?:[.,;!\n]|$|on|for|from"
    r"|tonight|tomorrow|\w+day))"
    r"|short[- ]?(?:staffed|handed)|shorthanded|tapped out|out of luck|dead in the water|stuck without"
    r"|in a bind|in a pinch"
    r"|out of (?:people|crew|crews|bodies|drivers|options|hands|members|staff)|strapped|shut|no[- ]crew"
    r"|crew-?less"
    r"|a (?:hard |firm |definite |big |solid )?no(?= (?:for|on|from))|a no[- ]go|a negative|negative)"
)
_IS = (
    r"(?:(?<=we are )|(?<=\d is )|(?<=\d )|(?<=we will be )|(?<=\d will be )|(?<=going to be )|(?<=station "
    r"is )|(?<=station will be ))"
)

NO_CREW: tuple[Phrase, ...] = (
    *plain(
        ShiftAction.NO_CREW,
        *_ASKS_FOR_COVER,
        r"(?:no|zero|negative) (?:(?!longer |shortage |lack |problem |issue |need |other |full |matter "
        r")[a-z]+ ){0,2}?"
        r"(?:crews?|coverage|staffing|staff|bodies|personnel)"
        r"(?! (?:chief|member|(?:on|in|at) (?:my|the (?!morning|afternoon|evening|night|day|weekend|\d"
        r"|station|schedule"
        r"|calendar|board))|of (?:mine|his|hers|theirs|fans)|(?:is |are |was )?(?:needed|required"
        r"|necessary)))",
        r"no full crews?|crews? not (?:found|available)",
        r"no (?:way|chance|hope)(?: in hell)?(?: that)? (?:[a-z]+ ){0,3}?(?:cover|staff|crew|man|field"
        r"|do|take|run)",
        rf"no longer (?!needs? |needing |requires? ){MORE}{HEADS}",
        rf"no luck {MORE}(?:crews?|coverage|people|anybody)",
        rf"not (?!only |crews?\b|just |happy |thrilled |impressed |bad |much of ){MORE}{HEADS}",
        rf"not {MORE}{RIG} (?:out|on the road|rolling|crewed|staffed|going|in service)",
        rf"not {MORE}(?:man|roll|field|staff|crew|run|put) (?:the |an? |our |any )?{RIG}",
        rf"not {MORE}(?:answer|take|respond to|handle|run)(?: any)? calls",
        r"(?:unable|not able|not be able|not been able|no ability) to (?:[a-z]+ ){0,3}?"
        r"(?:crew|cover|coverage|staff|field|respond|run|man|make it|help|do|take|get anybody|find "
        r"anybody|serve|get out)",
        rf"without {SOME}(?:crews?|coverage|staff)",
        r"(?:lost|lacks?|lacking|missing|losing|short|down) (?:(?:our|a|the|their|its|my) )?(?:whole "
        r"|entire |full )?crew",
        r"(?:have|has|got) (?:nobody|no people|zero people)(?! to (?!ride|run|cover|crew|staff|drive))",
        r"un(?:covered|staffed|crewed|manned|filled)(?! (?:an?|some|my|his|her)\b)",
        r"(?:needs? to|must|have to|has to|going to) (?:be|go) out of service",
        r"out of (?:crews?|staff)|(?:out of|not in) service|a crew short",
        r"please (?:assist|help)(?: us)?(?: out)? with (?:[a-z]+ )?coverage",
        r"out of commission|off the road|off[- ]?line|off the air",
        rf"{NEED} {SOME}(?:coverage|cover|a crew)(?! (?:sheet|letter|charge|chief|sheets"
        r"|(?:in|at|of) the (?!morning|afternoon|evening|am\b|pm\b|station|building)))",
        r"(?:coverage|cover) (?:is |will be )?(?:needed|wanted|required|requested|request|please)",
        r"(?:coverage|crew|staffing) (?:gap|hole|shortage|shortfall)s?|(?:gap|hole) in (?:our "
        r")?(?:coverage|staffing)",
        r"(?:probability|chance|odds|likelihood) of a crew(?= .{0,40}\b(?:zero|nil|none|0)\b)",
        r"(?:crew|coverage|staffing)(?: status)?(?: is|:) (?:none|nil|zero|negative)",
        rf"crews?(?= (?:for |on )?{WHEN}(?: \S+){{0,2}} (?:is |are )?(?:out sick|all sick|sick|bailed"
        r"|fell through|backed out|fell apart|called out|cancell?ed|a no|a no[- ]go|dead|off)\b)",
        r"crews? (?:is |are |has |have |just |all |now )*(?:unavailable|not available|fell through"
        r"|fallen through|backed out"
        r"|bailed(?: out| on us)?|called out|called off|canceled|cancelled|dropped out|fell apart"
        r"|falling apart|out sick)",
    ),
    Phrase(
        rf"neither(?=[^.;!?\n]{{0,80}}\b(?:{HEADS}|ride|run|respond)\b)",
        Act(ShiftAction.NO_CREW, True, "", absorbs=True),
    ),
    Phrase(r"needs?(?= (?:[a-z0-9:-]+ ){0,4}?cover(?:ed|ing)?\b)", Act(ShiftAction.NO_CREW, True, "", absorbs=True)),
    Phrase(
        rf"(?:mark|put|show|list|post|log|count|treat|record|note|consider)(?:ing)?(?= {WHO}(?: \d+)? "
        r"(?:down )?(?:as )?"
        r"(?:no crew|out of service|out\b|unavailable|not available|unable|uncovered|dark|without))",
        Act(ShiftAction.NO_CREW, False, "", absorbs=True),
    ),
    *loose(
        ShiftAction.NO_CREW,
        r"nobody|(?:no|zero) (?:people|drivers?(?! licen)|members?|takers|manpower|personnel|bodies"
        r"|volunteers|riders"
        r"|hands|emts?|ambulance)",
        r"(?:(?:can|could|do|does|did|have|has|been able to|is|are|will) )?not (?:have |been able to "
        r"|going to |be able to "
        r"|able to |yet )*(?:have|get|find|found|got|line up|round up|scare up|drum up|a|scrape)(?: the"
        r"| enough| any)? (?:anybody|enough|a single person|soul"
        rf"|{PEOPLE})(?: (?:to|who can) (?:ride|run|cover|drive|crew|staff|work|come in)| available)?",
        r"not have (?:a driver|an? emt)",
        r"(?:have|has) (?:not|none|not any)(?: a)? (?:crew|people|anybody)|(?:do|does|did) not have "
        r"(?:one|any)" + STOP,
        rf"(?:no|zero|nil) availability|unable(?= (?:for |on |at |from )*{WHEN})",
        r"no can do|crewless|needs? a (?:home|taker)",
        r"not enough (?:people|members|hands|volunteers|staff|drivers|emts)",
        r"will not be (?:around|up|responding|answering|running|on|in|here|there)(?= (?:on |for |from "
        rf"|at )?{WHEN})",
        rf"(?:have|has|got) (?:nothing|zip|zilch|nada|none)(?= (?:for|on|at|from|{WHEN})\b)",
        r"(?:can|will|could|would|are|is|am) not (?!take (?:us|our) )(?:going to |able to "
        rf")?(?:{SOME})(?:make it|make|be there"
        r"|come|run|respond|ride|take|do|help|fill|field|swing|manage|work|pull off|commit|serve|get "
        r"out|answer|roll)",
        r"(?:do|does) not (?:count on|expect|look for|page|call|plan on|rely on|depend on|tone"
        r"|dispatch)(?= (?:us|squad|\d\d)\b)",
        r"(?:came|coming|come|comes) up (?:empty|short|dry)|struck out|(?:is|are) a no[- ]show",
        r"(?:fell|falling|fallen) (?:through|apart)",
        r"called out|call(?:ed)? off",
        r"can not(?! [a-z])",
        r"(?:will not|not going to) (?:happen|work)|not happening|a no[- ]go|no[- ]go|a bust|a no(?= "
        r"(?:for|from))"
        r"|impossible|not possible|out of the question",
        r"(?:have|has|going|need) to (?:pass|bow out|sit out|stand down|drop out|back out(?! of our)"
        r"|pull out(?! of our)"
        r"|bail)(?: on| of)?",
        r"standing down|shut(?:ting)? down|going dark",
        r"(?<!help )(?<!work )(?<!figure )(?<!find )(?<!check )(?<!put us )(?<!put \d\d )(?<!us )down"
        r"(?! (?:to|the|there|with|on|here)\b)",
        rf"{_IS}{_STATES}",
        r"unavailable|not available",
        r"(?<!help )(?<!work )(?<!figure )(?<!find )(?<!check )out(?! (?:of|on|at|to|there|with|in|here"
        r"|for a)\b)",
    ),
    *loose(ShiftAction.NO_CREW, rf"(?:mark|list|show)(?= {WHO}(?: \d+)? down{STOP})", absorbs=True),
    *loose(ShiftAction.NO_CREW, rf"count(?:ing)?(?= {WHO}(?: \d+)? out\b)", absorbs=True),
)
