"""Words that are only polite: greetings, wishes, thanks, excuses. They say nothing and are taken out.

"If it helps, 42 will cover" is no condition, and "merry christmas" names no day.
"""

from __future__ import annotations

import re

from .needles import needles

_HOLIDAY = (
    r"(?:christmas|xmas|x-mas|new years?|new year|thanksgiving|turkey day|easter|hanukkah|halloween|holidays?"
    r"|4th of july|fourth(?: of july)?|valentines?(?: day)?|memorial day|labor day|mother'?s day"
    r"|father'?s day"
    r"|st\.? patrick'?s day|veterans day|juneteenth|(?:mon|tues|wednes|thurs|fri|satur|sun)day|weekend"
    r"|birthday)"
)
_YOU = r"(?:you|nobody|anybody|anyone|somebody|someone|everybody|everyone|you all|y'all|people)"
_SAYS = r"(?:we|us|our|no|not|crews?|nobody|coverage|need|\d+)"
_END = rf"(?=[,.;:!?\n)]|$| - | but\b| and\b| so\b| {_SAYS}\b)"
_REST = rf"(?:(?! {_SAYS}\b)[^,.;:!?\n]){{0,60}}?"

_ALL = (
    r"(?:all|everybody|everyone|folks|team|guys|gang|y'all|squads|chief|friends|again|dears|ladies|fellas"
    r"|people|sir|captain)"
)
_EMPTY: tuple[str, ...] = (
    r"^\W*(?:(?:hi|hey|hello|ok|so)\W+)?(?:good |gm )(?:morning|afternoon|evening)(?:,? (?:to "
    rf")?(?:you )?{_ALL})*(?=[,.!])",
    r"^\W*(?:morning|afternoon|evening)[,.!]+(?= (?!please|pls|thanks|not |\d{4}|from |\d+ ?-)\S+ \S+ \S+)",
    rf"^\W*(?:(?:hi|hey|hello)\W+)?(?:good )?(?:morning|afternoon|evening)(?:,? {_ALL})+\b",
    rf"\b(?:what(?: is)? up|how (?:is|are) (?:it going|you|things)|how do you do)(?:,? {_ALL})*(?:\?|\b)",
    r"^if (?:anybody|somebody|any squad|another squad|you) (?:has|have|can|could|is"
    r"|are)\b[^,.;]{0,30}, (?=we (?:need|have no|are"
    r"|do not|can not)|\d\d (?:needs|has no|is)|no crew)",
    r"\b(?!good friday)(?:have a )?(?:merry|happy|blessed|good|great|nice|safe|lovely)(?: and safe)? "
    rf"{_HOLIDAY}\b(?! "
    r"(?:night|eve|shift|day"
    rf"|morning)\b)(?:,? (?:to )?(?:you )?(?:all|everybody|everyone|folks|team|squads))?{_END}",
    r"\bif (?:it|that|this)(?: at all)? (?:helps?|works|would help|will help|is (?:ok|okay|alright"
    r"|possible|any help|fine|not too late"
    rf"|not too much trouble)|suits)(?: (?:you|anybody|everybody|everyone|for {_YOU}))?\b(?: with "
    rf"{_YOU}| for {_YOU}| out)?",
    r"\bif (?:it|that|the (?:slot|shift|spot)) is (?:still )?(?:open|available|free|not taken|needed"
    r"|wanted)\b",
    r"\bif (?:nobody|no one)(?: else)? (?:has|wants|claimed|took|is)\b[^,.;!?\n]{0,30}(?=[,.;!?\n]|$)",
    r"\bif (?:at all )?possible\b|\bif (?:need be|needed|necessary|required|you please|i may)\b",
    r"\bif (?:you|somebody|anybody|someone|anyone) (?:would|could|can|will|do not mind)(?: please| "
    r"kindly)?(?: be (?:so kind"
    r"|able)| do that| not mind| be so good| help)?" + _END,
    rf"\bif {_YOU} (?:is|are|was|were|have been)? ?(?:wondering|wonders?|cares?|asks?|asking|interested"
    r"|curious|needs? to know)\b",
    rf"\bin case {_YOU} (?:told you|missed|did not|was wondering|were wondering|is wondering|are wondering"
    rf"|wonder|ask|has not|have not|need|want){_REST}{_END}",
    rf"\bsorry (?:if|that|for|about|to(?! (?:hear|see)))\b{_REST}{_END}",
    rf"\b(?:please )?(?:forgive|excuse|pardon)\b{_REST}{_END}",
    rf"\b(?:my |our |many )?apologies (?:if|that|for|about|to)\b{_REST}{_END}",
    r"\b(?:i |we |i do )?(?:hope|hoping|trust|pray)(?: that)? (?:this|all|everybody|everyone|you|your"
    r"|y'all|folks|it is (?:ok|okay|not)|that is"
    rf" (?:ok|okay)|the day|things)\b{_REST}{_END}",
    r"(?:^|[.;!?] ?)let (?:us|me) see\b(?! (?:if|what|how|who|whether|when|about))",
    r"\bwould you look at (?:that|this)\b|\bwho would have (?:thought|guessed)(?: it)?\b|\bsurprise,? "
    r"surprise\b",
    r"\bhope (?:so|not)\b|\b(?:and )?guess what\b|\bwould you believe(?: it)?\b|\bbelieve (?:it or not"
    r"|me)\b|\byou guessed it\b",
    rf"\b(?:lmk|let me know|tell me) if (?:this|that|it|there|you|i|any){_REST}{_END}",
    rf"\b(?:i (?:think|guess|believe) )?(?:as )?{_YOU} (?:all |already |probably )*(?:knows?|heard|saw"
    r"|guessed)(?: by now| already)? but\b",
    r"\bas (?:i |we |was |you |previously |already |always |most |some )*(?:told|mentioned|said"
    r"|discussed|agreed|promised|noted|posted|know|heard"
    r"|expected|feared|usual|before)\b(?: (?:to |with )?(?:the |my |our )?(?:chief|captain|lieutenant"
    rf"|{_YOU}|earlier|yesterday|last night"
    r"|before|at the meeting))*",
    r"\b(?:many |so many )?thank(?:s| you)(?: so| very| a| all| ever)*(?: much| lot| bunch| "
    r"million)?(?:,? (?:all|everybody|everyone|folks|team|guys))?"
    r" (?:in advance|again|(?:in advance )?for (?:your |the |all |any |all your |being |bearing "
    r")?(?:understanding|patience|patient|help"
    r"|attention|time|consideration|support|flexibility|assistance|cooperation|with us|everything"
    rf"|bearing with us|listening|reading)){_REST}{_END}",
    r"\b(?:any (?:and all )?)?(?:help|assistance|it|this|that|coverage) (?:is|will be|would be) "
    r"(?:(?:much|greatly|very|really|so) )?appreciated\b",
    r"\b(?:much|greatly|really|very much|so) appreciated\b|\b(?:we |i |would |will |really |greatly "
    r"|much |do )*appreciate"
    r" (?:it|you all|you|y'all|everybody|everyone|you guys|any help|your help|the help|all the "
    r"help)\b(?=[,.;:!?\n]|$)",
    r"\b(?:i )?(?:hate|regret|am sorry|would hate) to (?:say|do|report|ask|bother|inform|be a bother"
    r"|tell|announce|let|bail|dump|spring)\b"
    r"(?: (?:this|that|it|you|everybody|everyone|folks|all|but|so late|on you|again|you all|that "
    r"this))*,?(?: but)?",
    r"\b(?:i|we) (?:am|are) (?:very |so |really |extremely )*(?:afraid|sorry|sad|happy|pleased|glad"
    r"|delighted|proud|thrilled)"
    r" (?:to (?:say|report|tell you|announce|inform you|let you know)(?: that)?|that)\b",
    r"\b(?:just )?(?:letting|let) (?:you|everybody|everyone|yall|the group|folks)(?: all| guys)? "
    r"know(?: that)?\b",
    r"\b(?:just )?(?:so (?:you|everybody|everyone)(?: all)? (?:knows?|are aware|is aware)|for (?:your"
    r"|the) (?:information|record|visibility"
    r"|awareness)|for what it is worth|to be (?:clear|safe|honest))\b",
    r"\b(?:please )?(?:be advised|be aware|note|take note)(?: that)?\b|\bplease note\b",
    r"\bbefore (?:i|we|anybody|somebody) (?:change|changes|forget|forgets|ask|asks|get|gets|leave|go"
    r"|say)\b[^,.;:!?\n]{0,30}" + _END,
    r"\b(?:how copy|do you copy|acknowledge|over and out|copy)\?",
    r"\b(?:i |we )?(?:was|were|have been|got) (?:asked|told) to (?:post|say|tell|report|pass|let)\b(?: "
    r"(?:that|this|it|you|along|on))*",
)
_SHORTER: tuple[tuple[str, str], ...] = (
    (r",? (?:would|will|could|can) (?:ya|you)(?: please)?(?:\?|$)", "."),
    (
        r"\b(?:it |that |we |i |this )?(?:would|will|d) be (?:so |very |really |much |most )*(?:grateful"
        r"|thankful|great|nice|awesome"
        r"|appreciated|lovely|good|wonderful|obliged|helpful|amazing)(?: of you)? if\b",
        "please",
    ),
    (r"\b(?:we|i) (?:would |d |really |will |greatly |much |so )*appreciate(?: it)? if\b", "please"),
    (r"\bplease,? (?:you|somebody|anybody|someone) (?:would|could|can|will)\b", "please"),
    (
        r"\b(?:would|could|can|will) you be (?:so (?:kind|good)|kind enough|good enough|able)(?: as)? to\b",
        "please",
    ),
    (r"\b(?:would|could|can) you (?:possibly|maybe|perhaps|just|kindly|please)\b", "can you please"),
    (
        r"\b(?:may|might|could|can) (?:i|we) (?:please )?(?:ask|request|trouble)(?: that)?(?: (?:you"
        r"|somebody))?(?: to| for)?\b",
        "please",
    ),
    (
        r"\bi (?:must|have to|need to|would|would like to|want to|am going to have to) ask(?: that)?(?: "
        r"(?:you|somebody))?(?: to| for)?\b",
        "please",
    ),
    (
        r"\b(?:would|is|will) it (?:be )?(?:at all )?(?:possible|ok|okay|alright|too late|a problem|a "
        r"bother|feasible)(?: for (?:us|you|\d\d))?"
        r" (?:to|if you|if we)\b",
        "please",
    ),
    (
        r"\b(?:is there )?any (?:chance|way|possibility)(?: that)?(?: (?:you|we|somebody|of|to))*(?: "
        r"(?:could|can|would|will))?\b",
        "please",
    ),
    (r"\b(?:do|would) you mind (?:if (?:you|we|i) )?", "please "),
    (
        r"\b(?:my|our|the) (?:captain|chief|lieutenant|lt|president|boss|officer|secretary)(?: also| just)?"
        r" (?:(?:told|asked) (?:me|us) to (?:ask|tell|have|get) (?:you )?(?:to )?|(?:wants|would like|asks"
        r"|asked|needs) (?:you |me )?to"
        r" (?:ask (?:you )?(?:to )?)?|says? (?:to )?)(?=(?:add|put|remove|take|cancel|drop|pull|scratch"
        r"|delete|sign|mark|list|enter|post)\b)",
        "please ",
    ),
    (
        r"\b(?:captain|chief|lieutenant)(?: also| just)? (?:says?|said) (?:to )?"
        r"(?=(?:add|put|remove|take|cancel|drop|pull|scratch|delete|sign|mark|list|enter|post)\b)",
        "please ",
    ),
)
_RULES = tuple(
    (re.compile(pattern), put, needles(pattern))
    for pattern, put in (*_SHORTER, *((pattern, "") for pattern in _EMPTY))
)


def without_courtesies(text: str) -> str:
    """What is said, without what is only polite."""
    for pattern, put, pieces in _RULES:
        if not pieces or any(map(text.__contains__, pieces)):
            text = pattern.sub(put, text)
    return text
