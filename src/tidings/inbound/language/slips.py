"""How people type in a hurry: short forms, slips of the keyboard, words run together.

Each pair is a pattern and the full form that the rest of the package knows.
"""

from __future__ import annotations

from functools import lru_cache

_WEEKDAY = (
    r"(?:mon(?:day)?|tue(?:s(?:day)?)?|wed(?:s|nesday)?|thu(?:rs?(?:day)?)?|fri(?:day)?|sat(?:urday)?"
    r"|sun(?:day)?)"
)
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_MONTHS = (
    "jan feb mar apr may jun jul aug sep sept oct nov dec january february march april june july august "
    "september october november december"
)
_NO_MONTH = "".join(f"(?<!{month} )" for month in _MONTHS.split())
_SOON = rf"(?:{_WEEKDAY}|today|tomorrow|tonight)"
_NUMBER = r"\d{1,2}(?:st|nd|rd|th)?\b(?![:/]| ?[ap]m?\b| ?- ?\d| to \d|\d)"

SHORT: tuple[tuple[str, str], ...] = (
    (r"\b(?:sum|some)1\b", "somebody"),
    (r"\bany1\b", "anybody"),
    (r"\bevery1\b", "everybody"),
    (r"\bno1\b", "nobody"),
    (r"\b2 (?=(?:cover|take|staff|fill|help|run|do|pick|ride|be|man|come|work)\b)", "to "),
    (r"\b(?:frm|form)(?= (?:sun|mon|tue|wed|thu|fri|sat|to|\d))", "from"),
    (r"\bfrm\b", "from"),
    (r"\b(?:shft|shif|shfit)\b", "shift"),
    (r"\bppl\b", "people"),
    (r"\b(?:sry|sory|srry|sorrry|soz)\b", "sorry"),
    (r"\bsvc\b", "service"),
    (r"\bneg(?:\.|\b)(?= crew| coverage| cover| staff| on| for)", "negative"),
    (r"\bn/c\b|(?<=\d )nc\b|^nc(?= )", "no crew"),
    (r"\b(no|need|needs|needing|want) cov\b", r"\1 coverage"),
    (r"\b(?:lookin)\b", "looking"),
    (r"\b(?:calender|calander|calandar|calendr)\b", "calendar"),
    (r"\bsome one\b", "somebody"),
    (r"\b(?:crew less)\b", "crewless"),
    (r"\b(\d\d)(?:'s|s)? (?:=|:=) ?(?=no\b|out\b|crew)", r"\1 "),
    (r" ?= ?(?=no\b|zero\b)", " - "),
    (r"\bwanna\b", "want to"),
    (r"\b(?:gotcha|got ya|got cha|got yall|got y'all)\b", "got you"),
    (r"\b(?:outta)\b", "out of"),
    (r"\btoo be\b", "to be"),
    (r"\bno body\b", "nobody"),
    (r"\btn\b", "tonight"),
    (r"\bthis night\b", "tonight"),
    (r"\bthis date\b", "today"),
    (r"\bmidnite\b", "midnight"),
    (r"\bcancle\b", "cancel"),
    (r"\b(?:habe|hvae)\b", "have"),
    (r"\b(?:ni|bo|mo) crew\b", "no crew"),
    (r"\bfir\b(?= (?:\d|us|our|the|mon|tue|wed|thu|fri|sat|sun|to))", "for"),
    (r"\bti\b(?= (?:\d|mid|noon))|(?:(?<=[ap]m )|(?<=\d ))too(?= (?:\d|noon|midnight))", "to"),
    (r"\bto night\b|\bto-night\b", "tonight"),
    (r"\bto morrow\b|\bto-morrow\b", "tomorrow"),
    (r"\b(?:know|now|no) ?body\b", "nobody"),
    (r"(?<=day )knights?\b|(?<=row )knight\b", "night"),
    (r"\bcrewe\b", "crew"),
    (r"\bb4\b", "before"),
    (r"^ad (?=(?:us|\d\d|squad)\b)", "add "),
    (r"\btake (us|squad \d+|\d\d) of(?= (?:the )?(?:mon|tue|wed|thu|fri|sat|sun|to|\d))", r"take \1 off"),
    (r"(?<![\d.])([0-3]?\d)\.(0?[1-9]|1[0-2])\.(?=[ \n]|$)", r"\2/\1"),
    (r"\b0 crew\b", "no crew"),
    (
        r"\b([01]?\d|2[0-4])\.([0-5][05])\b(?= ?(?:-|to|till?|until|h\b|hrs|,|$|we\b|no\b))|(?<=to "
        r")([01]?\d|2[0-4])\.([0-5][05])\b",
        r"\1\3:\2\4",
    ),
    (r"\b([01]?\d|2[0-4])h\b", r"\1:00"),
    (r"\b(\d{4}) ?x ?(\d{4})\b", r"\1-\2"),
    (r"\b(\d{1,2})(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\b", r"\1 \2"),
    (rf"\b({_WEEKDAY}|\d{{1,2}}/\d{{1,2}}):? d/n(?: both)?\b", r"\1 day shift and night shift"),
    (rf"\b({_WEEKDAY}|\d{{1,2}}/\d{{1,2}}):? d\b(?! ?\.)", r"\1 day shift"),
    (rf"\b({_WEEKDAY}|\d{{1,2}}/\d{{1,2}}):? n\b(?! (?:mon|tue|wed|thu|fri|sat|sun)| ?\.)", r"\1 night"),
    (r"\bboth shifts\b", "day shift and night shift"),
    (r"\b(be|is|are|go|going|goes|went) 10-7\b", r"\1 out of service"),
    (r"\b(be|is|are|go|going|goes|back) 10-8\b", r"\1 in service"),
    (r"(?<=\d )10-7\b", "out of service"),
    (r"(?<=\d )10-8\b", "in service"),
    (r"\ball (?:of )?the day\b(?! shift)", "all day"),
    (
        rf"\b({_WEEKDAY}) (1[3-9]|2\d|3[01])(?= (?:night|morning|evening|afternoon|overnight|day shift|all "
        rf"day|from|\d{{4}})\b|,)",
        r"\1 \2th",
    ),
    (rf"\b({_WEEKDAY}) ([1-9]|1[0-2])(?=,)(?!, ?\d)", r"\1 \2th"),
    (r"\bcn\b", "can"),
    (r"\b(?:nigt|ngt|nite)\b", "night"),
    (r"\b(?:cru|crue|crwe)\b", "crew"),
    (r"\b(?:hav|hve|haev)\b", "have"),
    (r"\bwil\b", "will"),
    (r"\b(?:thrusday|thrsday|thurday|thusday|thurdsay)\b", "thursday"),
    (r"^\W*10-4\b", "copy,"),
    (
        r"\b(night|overnight) into (?:the )?(?:next |early |tomorrow |today |(?:mon|tues|wednes|thurs|fri"
        r"|satur|sun)day )*morning\b",
        r"\1",
    ),
    (r"\b(?:tonite|tnight|tonihgt|tonigt|tonght|tonights|2nite|2night|2nt|tnite|2-nite)\b", "tonight"),
    (
        r"\b(?:tmrw|tmw|tmrow|tmr|tmro|tmmrw|tommorow|tomm?orr?ow|tomorow|tomoz|2morrow|2moro|2mrw)\b",
        "tomorrow",
    ),
    (r"\btomo\b|\btom(?= (?:night|nite|morn|day|aft|eve|am\b|pm\b|all|from|at|\d))", "tomorrow"),
    (r"\b2day\b", "today"),
    (r"\b(?:nites?|nigth|nihgt|nght|niht|noc)\b", "night"),
    (r"\bngihts?\b|\bnigths\b", "night"),
    (r"\b(?:morn|mornin|mornings|am shift)\b", "morning"),
    (r"\b(?:aft|aftn|arvo|afternoons)\b", "afternoon"),
    (rf"\b({_SOON}) eve\b", r"\1 evening"),
    (r"\b(?:eves|evenings)\b", "evening"),
    (rf"\b({_SOON}) a\.? ?m\b\.?", r"\1 morning"),
    (
        r"\b(?:(?:all|full|whole|entire|the whole|twenty[- ]four|for) )?24 ?-?(?:hrs?|hours?"
        r"|h)\b(?: shift)?",
        "24 hours",
    ),
    (r"\b(?:twenty[- ]four hours?|around the clock|24/7|(?:day and|day &) night both)\b", "24 hours"),
    (r"\b(?:wknd|wkend|weeknd|wkd)(s?)\b", r"weekend\1"),
    (r"\bw/e\b", "weekend"),
    (r"\bw/o\b", "without"),
    (r"\bw/ ?(?=\w)", "with "),
    (r"\b(?:b/c|bc|cuz|cause|coz)\b", "because"),
    (r"(?<=[a-z])/(?=[a-z])", " and "),
    (r"(?<=\w) ?\+ ?(?=\w)", " and "),
    (r"(?<=\w) n (?=\w)", " and "),
    (rf"(?<![/\d]){_NO_MONTH}\b4 (?=(?:{_SOON}|squad|us|our|the|this|night|days?)\b)", "for "),
    (r"\b(?:gonna|gunna|goin to)\b", "going to"),
    (r"\bgotta\b", "have to"),
    (r"\b(?:aint|ain't)(?: got| have)? (?:nobody|no one|noone|anybody|anyone)\b", "have nobody"),
    (r"\b(?:aint|ain't) got (?:no|a|any)\b", "have no"),
    (r"\baint\b|\bain't\b", "are not"),
    (r"\b(?:em|'em)\b", "them"),
    (r"\btheres\b", "there is"),
    (r"\b(?:crw|creww|cerw|crwe|cew)\b", "crew"),
    (r"\b(?:nocrew|no-crew)\b", "no crew"),
    (r"\b(?:covr|cver|cvr|coer)\b", "cover"),
    (r"\b(?:wendsday|wensday|wenesday|wendesday|wedensday)\b", "wednesday"),
    (r"\b(or|and|&|this|the) eve\b(?! of)", r"\1 evening"),
    (
        r"\b(?:no-one|noone|no one|nobdy|none of (?:our|the|my) (?:people|members|guys|folks|crew))\b",
        "nobody",
    ),
    (r"\banyone\b|\banybdy\b", "anybody"),
    (r"\b(?:some one|someone|sombody|sumbody|some body)\b", "somebody"),
    (r"\b(?:plz|pls|plse|pleas)\b", "please"),
    (r"\btho\b", "though"),
    (r"\bur\b", "your"),
    (r"\bu\b", "you"),
    (r"\br\b(?= \w)", "are"),
    (r"\b(?:crewed up|staffed up)\b", "staffed"),
    (r"\b(?:thx|thnx|thks|tks|ty)\b", "thanks"),
    (r"\bavail\b", "available"),
    (r"\bunavail\b", "unavailable"),
    (r"\b(?:rmv|remv|rm|remov|remvoe|rmove)\b", "remove"),
    (r"\b(?:xfer)\b", "move"),
    (r"\bsked\b|\bsched\b", "schedule"),
    (r"\bcal\b", "calendar"),
    (r"\b(?:peeps|bodies|peoples)\b", "people"),
    (r"\bambo?\b", "ambulance"),
    (r"\b(\d{1,2}(?::\d\d)?) ?([ap])(?:\. ?| )m\b\.?", r"\1\2m"),
    (r"\b([ap])\.\s?m\b\.?", r"\1m"),
    (r"\b(?:oos|o\.o\.s|o/s|ooo)\b\.?", "out of service"),
    (r"\bout-of-service\b", "out of service"),
    (r"\b(\d{1,2})\s?o'?clock\b", r"\1"),
    (r"\b(\d{1,2})ish\b", r"\1"),
    (rf"\b({_WEEKDAY}|{_MONTH})(?<!day)\.(?= ?\w)", r"\1"),
    (rf"\b({_MONTH}) (\d{{1,2}})(?:st|nd|rd|th)? ?(?:-|to|thru|through) ?({_NUMBER})", r"\1 \2 to \1 \3"),
    (
        rf"\b({_MONTH}) ({_NUMBER})(,? (?:and|&|or) |, )({_NUMBER})(,? (?:and|&|or) |, )({_NUMBER})",
        r"\1 \2\3\1 \4\5\1 \6",
    ),
    (rf"\b({_MONTH}) ({_NUMBER})(,? (?:and|&|or) )({_NUMBER})", r"\1 \2\3\1 \4"),
)

_HOURS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_COUNTED = (
    r"(?! (?:of|people|members?|crews?|calls?|drivers?|emts?|hours?|minutes?|mins|days?|weeks?|nights?"
    r"|more|point"
    r"|time|squads?|other|another|guys|folks|inches|dollars|bucks|years?)\b)"
)
_TWELVE = r"(1[0-2]|[1-9])((?::\d\d)?)"
_LATE = r"([5-9]|1[01])((?::\d\d)?)"
_EARLY = r"(12|[1-4])((?::\d\d)?)"
_CLOCKED = r"(?:(?<=to )|(?<=til )|(?<=till )|(?<=until )|(?<=from )|(?<=at )|(?<=-)|(?<=and )|(?<=between ))"
_WORD_HOURS: tuple[tuple[str, str], ...] = tuple(
    pair
    for hour, word in enumerate(_HOURS, 1)
    for pair in (
        (rf"\b(from|until|till?|at|between) {word}\b{_COUNTED}", rf"\g<1> {hour}"),
        (
            r"\b(\d[\d:]* ?(?:[ap]m?)?|noon|midnight)( to | till? | until | thru | through | ?- "
            rf"?){word}\b{_COUNTED}",
            rf"\g<1>\g<2>{hour}",
        ),
        (rf"\b{word} (?=(?:to|till?|until|-) (?:\d|noon|midnight|{'|'.join(_HOURS)}\b))", f"{hour} "),
    )
)
WORDED: tuple[tuple[str, str], ...] = (
    *_WORD_HOURS,
    (r"\b(\d{1,2}(?::\d\d)?) ([ap]) m\b", r"\1\2m"),
    (r"\b12(?::00)? ?noon\b", "noon"),
    (r"\b12(?::00)? ?midnight\b", "midnight"),
    (rf"\b{_TWELVE} in the morning\b", r"\1\2am"),
    (rf"\b{_TWELVE} in the (?:afternoon|evening)\b", r"\1\2pm"),
    (rf"\b{_LATE} at night\b", r"\1\2pm"),
    (rf"\b{_EARLY} at night\b", r"\1\2am"),
    (rf"{_CLOCKED}{_TWELVE} this morning\b", r"\1\2am today"),
    (rf"{_CLOCKED}{_TWELVE} this (?:afternoon|evening)\b", r"\1\2pm today"),
    (rf"{_CLOCKED}{_TWELVE} (tomorrow|the next|the following|next|{_WEEKDAY}) morning\b", r"\1\2am \3"),
    (rf"{_CLOCKED}{_TWELVE} (tomorrow|{_WEEKDAY}) (?:afternoon|evening)\b", r"\1\2pm \3"),
    (rf"{_CLOCKED}{_LATE} (tomorrow|{_WEEKDAY}) night\b", r"\1\2pm \3"),
    (rf"(?:(?<=from )|(?<=at )|(?<=starting )|(?<=between )){_LATE} tonight\b", r"\1\2pm tonight"),
    (
        r"(?<=[ap]m) (?:this|the next|the following|next)\b(?! (?:week|month|mon|tue|wed|thu|fri|sat|sun"
        r"|coming))",
        "",
    ),
)

_MINE = r"(?:we|i) (?:had |have |just |already |once )*"
SAID: tuple[tuple[str, str], ...] = (
    (r"\bbetween the hours of\b", "between"),
    (r"\bno (day|night|morning|afternoon|evening|overnight) (?:crews?|coverage)\b", r"no crew \1 shift"),
    (
        r"\b(?:will not have|do not have|does not have|have not got|do not got|can not get) nobody\b",
        "have nobody",
    ),
    (
        r"\b(?:i |we )?do not (?:think|believe|expect)(?: that)? (we|squad \d+|\d\d) (are|is|will|can)\b",
        r"\1 \2 not",
    ),
    # "The shift that we signed up for" is ours; it is no wish to sign up.
    (
        r"\b(?:(?:that|the|this|our|a|one|any) )*(?:shift|one|slot|entry|spot)s?(?:,? (?:that|which"
        r"|for which))?"
        rf" {_MINE}(?:have|had|signed up|registered|took|booked|requested|picked up|put (?:in|up)"
        r"|posted|were on"
        r"|were given|got|are (?:on|down))(?: for| on| up for)?\b",
        "our shift",
    ),
    (
        r"(^|[.;,!\n] ?|\bas )(?:we|i) had (?:signed (?:us )?up|registered|been put down|been)(?: us)? "
        r"(?:for|on)\b",
        r"\1our shift on",
    ),
    (r"\b(?:is|be) no (\d\d)\b(?! crew| coverage)", r"\1 no crew"),
    (rf"\bno (\d\d) (?={_SOON})", r"\1 no crew "),
    (r"\bun-?add\b", "remove"),
    (r"\bno (\d\d) (crews?|coverage)\b", r"\1 no \2"),
    (r"\bwell (?=(?:take|cover|be|do|have|run|staff|handle|pick|need|crew)\b)", "we will "),
    # What somebody has put up is a tale of the past; only "put us on" without him is a wish.
    (r"\bi( just| have| accidentally| mistakenly)? (?:put|added|posted|entered|signed up)\b", r"we\1 posted"),
    (
        r"(?<!can )(?<!could )(?<!would )(?<!will )\b(somebody|i|you|they|he|she|we|who)( just| have| had"
        r"| accidentally| mistakenly)? (?:put|added)\b",
        r"\1\2 posted",
    ),
    (
        r"(?:,| -|;) (?=(?:(?:can|could|would|will|does|do|is|are) (?:somebody|anybody|another|any|you"
        r"|other|\d\d)"
        r"|any(?:body)?|who)\b(?! (?:all|day|time)))",
        ". ",
    ),
    (
        r"\b(?:move|switch|reschedule|bump|push|swap|change|trade) (?:(us|our|squad \d+"
        r"|\d\d)\b)(?: shift)?([^.?!\n]*?) (?:over )?to"
        rf" (?=(?:the )?(?:next )?(?:{_SOON}|{_MONTH}|\d{{1,2}}/\d|\d{{1,2}}(?:st|nd|rd|th)))",
        r"remove \1\2, add \1 ",
    ),
    (
        r"\b(?:swap|trade|exchange|switch)(?:ping|ing)? (our|squad \d+|\d\d)((?: "
        rf"[a-z0-9/-]+){{1,4}}?) (?:for|with|to) (?=(?:the )?(?:next )?"
        rf"(?:{_SOON}|{_MONTH}|\d{{1,2}}/\d|\d{{1,2}}(?:st|nd|rd|th)))",
        r"remove \1\2, add \1 ",
    ),
)

_LONG = frozenset({
    "tonight", "tomorrow", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday",
    "weekend", "morning", "afternoon", "evening", "midnight", "coverage", "covered", "covering", "uncovered",
    "unstaffed", "uncrewed", "available", "unavailable", "service", "schedule", "calendar", "nobody",
    "anybody", "somebody", "staffed", "staffing", "january", "february", "september", "october", "november",
    "december", "overnight", "confirmed", "night", "cover", "shift", "remove", "cancel", "delete", "unable",
    "crews", "scratch", "august", "today", "squad", "please", "everybody", "unfortunately",
})  # fmt: skip
_SURE = 5
"""Shorter words are left alone: one letter makes another word of them ("crew", "crow")."""
_OTHERS = frozenset({
    "services", "serviced", "scheduler", "scheduled", "schedules", "coveted", "stuffed", "stuffing",
    "remote", "sundae", "sundry", "clover", "cower", "coven", "covet", "covert", "comer", "covey", "shirt",
    "swift", "shifty", "shifted", "shaft", "removed", "remover", "cancer", "cancelled", "canceled",
    "cancels", "deleted", "pleased", "pleases", "pleasure", "enable", "crewe", "crews", "cress", "chews",
    "crows", "craws", "toady", "squat", "squid", "squads", "nights", "knight", "nightly", "covers",
    "shifts", "removes", "deletes", "stable", "delegate", "plead", "pleats", "coder", "corer", "cooler",
    "coffer", "cavern", "usable", "tidy", "crewed", "crewd", "screws", "undoable", "squish", "shit",
    "shift", "august", "todays", "eight", "might", "nigh", "squared", "sunny", "money", "holiday", "parade",
    "covid", "coved", "coyer", "clovers", "removal", "canoe", "canal", "candle", "camel", "chancel",
    "unstable", "release", "leases", "relate",
})  # fmt: skip


_SHORT = frozenset({"crew", "take", "have", "need", "from"})
_NAMES = frozenset({"ned", "tak", "crews", "need", "needs", "taken", "takes", "haven", "creed", "farm"})


@lru_cache(maxsize=4_096)
def mended(word: str) -> str:
    """The word that was meant, if one slip makes it one that matters here; else the word itself."""
    if len(word) <= _SURE and word not in _NAMES and word not in _SHORT:
        short = next((known for known in sorted(_SHORT) if _is_short_slip(word, known)), None)
        if short is not None:
            return short
    if len(word) < _SURE or word in _LONG or word in _OTHERS or word.removesuffix("s") in _LONG:
        return word
    return next((known for known in sorted(_LONG) if word[0] == known[0] and _is_slip(word, known)), word)


def _is_short_slip(word: str, known: str) -> bool:
    """Two letters swapped, one typed twice, or a vowel left out: what makes no other word."""
    if sorted(word) == sorted(known):
        return _is_slip(word, known) and word[0] == known[0]
    if len(word) == len(known) + 1:
        return any(word == known[:i] + known[i] + known[i:] for i in range(len(known)))
    return any(word == known[:i] + known[i + 1 :] for i in range(1, len(known)) if known[i] in "aeiou")


def _is_slip(word: str, known: str) -> bool:
    """One letter too many, missing, wrong, or two of them swapped."""
    if abs(len(word) - len(known)) > 1:
        return False
    same = next(
        (i for i, pair in enumerate(zip(word, known, strict=False)) if pair[0] != pair[1]), len(known)
    )
    rest, wanted = word[same:], known[same:]
    swapped = wanted[1:2] + wanted[:1] + wanted[2:]
    return rest[1:] == wanted or rest == wanted[1:] or rest[1:] == wanted[1:] or rest == swapped
