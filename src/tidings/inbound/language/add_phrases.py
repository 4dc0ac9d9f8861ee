"""Phrases for "we have a crew" and "add us"."""

from __future__ import annotations

from ..domain import ShiftAction
from .lexicon import AGAIN, HAVE, OWNER, STOP, TEAM, THING, WHEN, WHO, WILL, YES
from .tokens import Act, Phrase, echo, loose, plain

_NEXT = r"(?= (?:for|from|on|\w*day|tonight|tomorrow|\d))"

ADD: tuple[Phrase, ...] = (
    *echo(
        ShiftAction.ADD,
        r"(?:(?<=\d )|(?<=we )|(?<=they ))(?:do |will |can |could |would )?(?:has|have|got|gets|take"
        r"|takes|get|cover|handle|do"
        rf"|run|grab|pick up|picking up|taking|covering) {THING}(?= ?(?:[.,;!\n]|$|for|up))",
        rf"(?:(?<=\d )|(?<=we ))(?:can|will) (?:pick|step|jump|fill)(?: {THING})?(?: up| in){STOP}",
        r"(?:(?<=\d )|(?<=we ))(?:can|will)(?= ?(?:instead ?)?(?:[.,;!\n]|$))",
        r"(?:(?<=\d )|(?<=we ))(?:do )?(?:have|has) one",
        rf"(?:(?<=\d )|(?<=we ))(?:has |have )?(?:picked|got|taken|claimed|grabbed)(?: {THING})(?: "
        rf"up)?{STOP}",
        r"will have one(?= (?:in|for|from|at|\d))",
    ),
    *loose(ShiftAction.ADD, rf"count(?= {WHO}(?: \d+)? in\b)", absorbs=True),
    *loose(ShiftAction.ADD, rf"(?:put(?:ting)?|jot|write|stick|note)(?= {OWNER} (?:\d+ )?down (?!as\b))", absorbs=True),
    *loose(ShiftAction.ADD, rf"put(?:ting)?(?= {OWNER} (?:\d+ )?down{STOP})", absorbs=True),
    *plain(
        ShiftAction.ADD,
        rf"{HAVE} (?:(?!no |not |half |partial |part |most |third |skeleton |of |from |on |at |in |for "
        rf")[a-z]+ ){{0,3}}?{TEAM}"
        r"(?! (?:chief|member|meeting|room|shirts?|jackets?|coming|like|of|photo|dinner))",
        r"crews? (?:has been |have been |was |is |are )?(?:now |all )?(?:confirmed|set|ready|available"
        r"|in place|complete|found"
        r"|secured|lined up|good to go|yes|a go|arranged|ok|okay)",
        r"(?<=\d )crew on" + _NEXT,
        rf"crews? (?:is |are |will be )(?:on|in|good){_NEXT}",
        rf"crews?(?= (?:for |on )?{WHEN}(?: \S+){{0,3}} (?:is |are )?(?:all )?(?:set|confirmed|ready|good"
        r"|lined up|found|yes|secured|a go|good to go)\b)",
        r"put (?:in )?(?:an?|our)(?: full| extra)? (?:crew|shift)(?! together)",
        r"(?:can|will) (?:take|answer|run) calls",
        r"add(?:ing)? (?:an?|another|our)(?: full| extra| second)? (?:crew|shift)",
        r"(?:can|will|able to|could) (?:now |still |also )?(?:put|make|form|get|field|muster|provide)"
        r" (?:together )?(?:a|an|one)(?: full| extra)? crew",
        r"(?:agree[sd]?|offer(?:s|ed|ing)?) to (?:cover|take)",
        r"(?:yes|full|complete|confirmed) crews?(?! (?:at|in|dinner|meeting|photo|picture|of|showed)\b)",
        r"(?:is|are|am) (?:now )?(?:confirmed|crewed)",
        rf"crew of (?:two|three|four|five|\d)(?= (?:for |on )?{WHEN})",
        r"(?:back )?in service",
        r"(?<!short )(?<!short-)(?<!half )(?<!under )(?:fully )?(?:staffed|crewed|manned)",
        r"(?<!we )(?<!they )(?<!i )(?<!have )(?<!has )covered(?! (?:in|with|for|\d)\b)",
    ),
    *plain(
        ShiftAction.ADD,
        rf"{WILL} {YES}(?:cover(?! (?:for )?us\b)|staff|man)",
        rf"{WILL} (?:still |now |also |fully )?crew",
        r"(?<!been )covering(?! for\b(?! \d| squad))|(?<=\d )covers|(?:will be|are|is) (?:staffing"
        r"|manning)|(?:taking|take) over(?= (?:for )?(?:\d|squad|their|our))",
        rf"(?<!.)crew(?= (?:for |on )?{WHEN}[^a-z?]*$)",
        takes_object=True,
    ),
    *loose(
        ShiftAction.ADD,
        r"add(?:ing)?|be added|reinstate|restore",
        r"(?:put|slap|throw|stick|plug|slot|pop|chuck|jot|toss|squeeze|fit|keep|leave|plop|tack|bring"
        rf"|work|roll|place|include)(?:ting|ping|ing)?(?= {OWNER}(?: \d+)? (?:back )?(?:on|in|up)\b)",
        rf"(?:sign|mark|pencil|write|ink)(?= {WHO}(?: \d+)? (?:up|on|in|down|for|as)\b)",
        r"(?:sign(?:ing)? up|list|enter|schedule|book|post|slot|show|log|record|include|register)(?= "
        rf"{WHO}\b)",
        rf"(?:sign(?:ing)? up)(?= (?:for )?{WHEN})",
        r"(?<=can )confirm(?= (?:us|squad|\d\d)\b)",
        r"(?:(?<=\d )(?:takes|covers|assumes|grabs|picks up|runs|does|steps in|fills in|stands in)"
        r"|(?<=we )(?:cover|take|assume|run|do|grab|pick up)|(?<=, )taking)"
        rf"(?= (?:for |on |over )*(?:{WHEN}|(?:squad )?\d\d\b|their\b))",
        rf"{WILL} {YES}(?:stand in|sit in|fill in|step in|look after|back ?fill|help out|relieve)",
        r"(?:agreed|undertaken|offered|promised) to (?:stand in|sit in|fill in|step in|look after"
        r"|relieve|cover|take|ride|work)",
        rf"put(?= us {WHEN})|(?:is|are) back on(?= for)|(?:crew of (?:two|three|four|five|\d))(?= "
        rf"(?:for |on )?{WHEN})",
        r"additions?(?= (?:for|to) (?:us|squad|\d))",
        rf"{WILL} {YES}(?:do|take|pick up|run|stay on|ride|work|handle|help|grab|answer|serve|sign up "
        r"for|claim|fill|have)"
        r"(?! (?:some|more|somebody|to|you|no|not|a (?:look|nap|break|seat|picture|photo|shower)"
        r"|anybody|an?)\b)",
        rf"(?:(?<=we )are|(?<=\d )is) {AGAIN}(?:good|in|on|set|up|ready|good to go|a go|ok|okay"
        rf"|fine)(?= (?:for|from|on|to go|to cover|{WHEN}))",
        rf"(?:(?<=we )are|(?<=\d )is|that is) {AGAIN}(?:a (?:go|yes))(?= (?:for|on|from|{WHEN}))",
        rf"(?:(?<=we )are|(?<=\d )is|(?<=we )will be|(?<=\d )will be) (?:back )?(?:on|in|good to go){STOP}",
        rf"(?<=\d )(?:will be|is) there(?= {WHEN})",
        r"(?:will be|are|is) (?:back )?up and running|be put (?:back )?(?:on|in|down)",
        rf"(?:good to go|all set)(?= for {WHEN})",
        rf"(?:(?<=we )|(?<=\d )|(?<=have )|(?<=has ))filled(?= {WHEN})",
        r"(?<=we )volunteer|(?<=\d )volunteers?(?: to (?:cover|take|do))?|volunteering(?= (?:for|to))"
        r"|dibs on|claiming",
        rf"give(?= us {WHEN})",
        rf"get(?= {WHO}(?: \d+)? (?:back )?(?:on|in)\b)",
        rf"(?<=\d )(?:back )?(?:on|in|good|good to go|up)(?= ?(?:$|[.!,]|for {WHEN}))",
        r"(?:(?<=we )(?:will be|are)|(?<=\d )(?:will be|is)) (?:on|in|taking|running|working|doing"
        r"|picking up|grabbing|handling)"
        rf"(?= (?:for )?{WHEN})",
        rf"(?<=\d )(?:taking|doing|running|picking up|grabbing|handling)(?= (?:for )?{WHEN})",
        r"(?:have|has|got) (?:\d |three |four |enough |the |some )?(?:somebody|people|folks|a driver|a full)"
        r"(?: (?:lined up|confirmed|set|ready))?(?= (?:for|on|in|to))",
        r"(?:have|has|got) (?:somebody|people|folks|a driver|a full)",
        rf"(?:post|put|throw|stick|slap) {THING} (?:up|on|in)(?: the (?:board|calendar|schedule))?",
        r"(?:(?<=day )|(?<=night )|(?<=ing )|(?<=noon ))(?:yes|ok|okay|good|fine)(?= ?(?:[,.;]|$))",
        r"available",
        r"stay(?:ing)? on|hold(?:ing)? (?:down )?the fort",
    ),
    Phrase(
        rf"(?:(?<=we )(?:have got|have|got)|(?<=\d )(?:has got|has|got|gets|picked up))(?= {WHEN})"
        rf"|got (?:you|it|this|them)(?= (?:for |on )?{WHEN})",
        Act(ShiftAction.ADD, False, "", is_terse=True),
    ),
)
