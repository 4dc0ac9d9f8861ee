"""Word classes that the phrases are made of: people, times, crews, and verbs."""

from __future__ import annotations

SOME = r"(?:[a-z]+ ){0,2}?"
MORE = r"(?:(?!but |and |or |if |no |not |nobody |needs? |lacks? |lose )[a-z]+ ){0,6}?"
YES = r"(?:(?!not |never |no |hardly |you |somebody |anybody |they |he |she )[a-z]+ ){0,2}?"

OWNER = r"(?:us|our|we|them|it|this|that|the|my|squad|sq|station|rescue|#?\d+)"
WHO = r"(?:us|our (?:squad|crew|name)|them|squad|sq|station|rescue|#?\d\d)"
OWN = r"(?:us|our|squad|sq|station|rescue|#?\d\d)"
THING = r"(?:it|that|this|one|them|those|that one|this one|the shift|that shift)"
SOMEBODY = (
    r"(?:somebody|anybody|another squad|any (?:other )?squads?|other squads?|one of (?:the|you)(?: [a-z]+)?"
    r"|another (?:crew|station|town)|a (?:squad|neighbor|neighboring squad)|any volunteers"
    r"|volunteers)(?: else)?"
)

HEADS = r"(?:crews?|coverage|cover(?:ed|ing)?|staff(?:ed|ing)?|crewed|in service|manned|available)"
TEAM = r"(?:crews?|coverage|team)"
RIG = r"(?:ambulance|rig|truck|bus|unit|squad car|box)"
PEOPLE = (
    r"(?:people|bodies|members|hands|volunteers|staff|personnel|manpower|numbers|folks|guys|riders"
    r"|warm bodies"
    r"|drivers|emts|a soul|anybody|somebody)"
)
HAVE = (
    r"(?:have|has|having|got|get|find|found|with (?:an?|our|one|full|the|my)|picked up|secured|arranged"
    r"|lined up|provide|field|run|offer"
    r"|rounded up|mustered|confirmed|assembled|organi[sz]ed|recruited|scrounged(?: up)?|dug up|drummed "
    r"up|whipped up"
    r"|managed|(?:scraped?|pulled|put|cobbled|got|threw|pieced|patched) (?:up|together))"
)
NEED = (
    r"(?:needs?|needing|in need of|requests?|requesting|request for|seeking|seeks?|requires?|requiring"
    r"|looking for"
    r"|searching for|hunting for|in search of|wants?|asking for|asks? for|could use|can use|begging for"
    r"|appreciate|desperate for|stuck for|call(?:ing)? for|hoping for)"
)
TAKE = (
    r"(?:cover(?:ing)?|tak(?:e|ing)|pick(?:ing)? up|grab(?:bing)?|handl(?:e|ing)|want|spare|do|run"
    r"|manage|fill in|step in"
    r"|help(?: out)?)"
)
WILL = (
    r"(?:can|will|could|able to|happy to|glad to|going to|willing to|prepared to|would (?:love|like|be "
    r"(?:glad|happy|able|willing|pleased)) to|ready to|want to|clear(?:ed)? to|free to|set to|good to)"
)

WEEKDAY = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:days?)?"
WHEN = (
    rf"(?:(?:on |the |this |next |that |all |whole |both |coming )*(?:{WEEKDAY}|today|tonight|tomorrow"
    r"|weekend"
    r"|morning|afternoon|evening|nights?|days?|overnight|christmas|thanksgiving|easter|halloween|new "
    r"years|24 hours"
    r"|\d{1,2}/\d{1,2}|\d{1,2}(?:st|nd|rd|th)|\d{4}|\d{1,2}(?:[ap]m?)?(?: ?- ?|to )\d|from \d|noon"
    r"|(?:jan|feb|mar|apr|may|june?|july?|aug|sep|oct|nov|dec)[a-z]* \d)\b)"
)
AGAIN = r"(?:now |back |all |both |still |also |definitely |again |officially |actually |in fact )?"
STOP = r"(?= ?(?:[.,;!\n]|$))"
