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
    (rf"\b({_SOON}) am\b", r"\1 morning"),
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
    (r"\b(\d{1,2}(?::\d\d)?) ?([ap])\.\s?m\b\.?", r"\1\2m"),
    (r"\b([ap])\.\s?m\b\.?", r"\1m"),
    (r"\b(?:oos|o\.o\.s|o/s|ooo)\b\.?", "out of service"),
    (r"\bout-of-service\b", "out of service"),
    (r"\b(\d{1,2})\s?o'?clock\b", r"\1"),
    (r"\b(\d{1,2})ish\b", r"\1"),
    (rf"\b({_WEEKDAY}|{_MONTH})\.(?= ?\w)", r"\1"),
    (rf"\b({_MONTH}) (\d{{1,2}})(?:st|nd|rd|th)? ?(?:-|to|thru|through) ?({_NUMBER})", r"\1 \2 to \1 \3"),
    (
        rf"\b({_MONTH}) ({_NUMBER})(,? (?:and|&|or) |, )({_NUMBER})(,? (?:and|&|or) |, )({_NUMBER})",
        r"\1 \2\3\1 \4\5\1 \6",
    ),
    (rf"\b({_MONTH}) ({_NUMBER})(,? (?:and|&|or) )({_NUMBER})", r"\1 \2\3\1 \4"),
)

_HOURS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
WORDED: tuple[tuple[str, str], ...] = tuple(
    pair
    for hour, word in enumerate(_HOURS, 1)
    for pair in (
        (
            rf"\b(from|until|till?|to|at|between) {word}\b(?= ?(?:$|[-,.!;]|to|till?|until|and \w+|am|pm"
            rf"|in the|at night|{_SOON}))",
            rf"\1 {hour}",
        ),
        (rf"\b{word} (?=(?:to|till?|until|-) (?:\d|noon|midnight|{'|'.join(_HOURS)}\b))", f"{hour} "),
    )
)

SAID: tuple[tuple[str, str], ...] = (
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
        r"\b(?:move|switch|reschedule|bump|push) (?:(us|our|squad \d+"
        r"|\d\d)\b)(?: shift)?([^.?!\n]*?) (?:over )?to"
        rf" (?=(?:the )?(?:next )?(?:{_SOON}|{_MONTH}|\d{{1,2}}/\d|\d{{1,2}}(?:st|nd|rd|th)))",
        r"remove \1\2, add \1 ",
    ),
)

_LONG = frozenset({
    "tonight", "tomorrow", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday",
    "weekend", "morning", "afternoon", "evening", "midnight", "coverage", "covered", "covering", "uncovered",
    "unstaffed", "uncrewed", "available", "unavailable", "service", "schedule", "calendar", "nobody",
    "anybody", "somebody", "staffed", "staffing", "january", "february", "september", "october", "november",
    "december", "overnight", "confirmed",
})  # fmt: skip
_SURE = 6
"""Shorter words are left alone: one letter makes another word of them ("might", "night")."""
_OTHERS = frozenset(
    {
        "services",
        "serviced",
        "scheduler",
        "scheduled",
        "schedules",
        "coveted",
        "stuffed",
        "stuffing",
        "remote",
        "sundae",
        "sundry",
    }
)


@lru_cache(maxsize=4_096)
def mended(word: str) -> str:
    """The word that was meant, if one slip makes it one that matters here; else the word itself."""
    if len(word) < _SURE or word in _LONG or word in _OTHERS or word.removesuffix("s") in _LONG:
        return word
    return next((known for known in sorted(_LONG) if word[0] == known[0] and _is_slip(word, known)), word)


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
