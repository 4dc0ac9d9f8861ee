"""Cuts a text into tokens, left to right, the longest phrase first."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from . import day_phrases
from .phrases import PHRASES
from .shift_words import Shift
from .tables import words
from .tokens import Act, ClockFormat, ClockTime, DayMention, Mark, Marked, ParserContext, SquadMention, TextToken, Word

_MARKS: tuple[tuple[Mark, str], ...] = (
    (
        Mark.MEANT,
        r"i (?:mean|meant)(?: to (?:say|write|put|type))?|make (?:that|it)(?= (?:the )?[\dsmtwfno])"
        r"|correction(?! for)|or rather"
        r"|rather|no wait|wait no|(?:strike|scratch) that|oops|(?:that )?should (?:be|say|read|have "
        r"(?:said|been|read))(?= (?:on |the )?[\dsmtwfno])"
        r"|my (?:bad|mistake)",
    ),
    (Mark.AFTER_THAT, r"after that|from then on|from there"),
    (Mark.BETWEEN, r"between"),
    (Mark.UNTIL, r"until|till?|up to|before|(?:and )?(?:ending|finishing|ends)(?: at)?"),
    (Mark.FROM, r"(?:starting|beginning|starts?|begins)(?: at| from)?|from|after|as of"),
    (Mark.TO, r"to|thru|through"),
    (Mark.AT, r"at"),
    (Mark.NEXT_WEEK, r"next week"),
    (Mark.THEN, r"then|but|however|while|whereas"),
    (Mark.AND, r"and|or|&|plus|nor"),
    (Mark.NOT, r"not|never|no longer|hardly|barely|unable to|fail(?:ed)? to|doubt|refuse[sd]?"),
    (Mark.US, r"we|us|our|ours|ourselves|my (?:squad|station)"),
    (Mark.THEY, r"they|them|their"),
    (Mark.ME, r"i|me|my|mine"),
    (Mark.CREW, r"crews?|coverage|staff(?:ing)?|shifts?|calendar|schedule|cover"),
)
_FILLERS = words("filler")
_CLOCKS = (
    r"(?P<military>(?:[01]\d|2[0-4]):?[0-5]\d)(?: ?(?:hrs?|hours|h))?(?! ?(?:am?|pm?)\b)"
    r"(?!\d|:\d|/\d{1,2}\b)",
    r"(?P<halved>(?:1[0-2]|0?[1-9])(?::?[0-5]\d)? ?(?:am?|pm?))\b",
    r"(?P<worded>noon|midday|midnight|12 ?noon|12 ?midnight)\b",
    r"(?P<bare>\d{1,2}:[0-5]\d|\d{1,2})(?: ?hrs?)?\b(?!\d|:\d|/|st\b|nd\b|rd\b|th\b|%)"
    r"(?: in the (?:morning|afternoon|evening)\b| at night\b)?",
)
_PAUSES = dict.fromkeys(":()", Mark.PAUSE)
_PART_OF_DAY = re.compile(r"(morning|afternoon|evening|night)$")
_COUNTED = re.compile(r" (?:people|members?|crews?|calls?|emts?|drivers?|minutes?|mins?|days?|weeks?|times|of)\b")

_DOES = re.compile(
    r" (?:has|have|is|are|will|can|does|do|needs?|(?:has |have )?no (?:crew|coverage)|out of service|down)\b"
)
_COUNTING = words("counting")
_NO_SHIFT = re.compile(r" (?:off|notice|ago|later|left|before|in a row|like|until|from now|away|straight|old)\b")
_FOREIGN = (
    "engine|medic|ladder|truck|tower|tanker|battalion|company|brush|als|unit|radio|ambulance|rig|car|bus"
    "|bay|room|route|exit"
)
_BEFORE_TIMES = frozenset(
    {"to", "and", "-", "until", "till", "til", "from", "at", "between", "thru", "through", "after", "before"}
)
_RANGED_BEFORE = re.compile(r"\d{4} ?(?:-|to|until|till) ?$")
_RANGED_AFTER = re.compile(r" ?(?:-|to|until|till) ?\d{4}\b")
_LAST_DAY = 31  # of a month: "on 30" may be a date, "on 99" is not
_BEFORE_SQUADS = frozenset(
    {"for", "add", "remove", "scratch", "take", "put", "pull", "drop", "cancel", "from", "at", "and"}
)


class ScannedText(NamedTuple):
    """The tokens of a text, with warnings."""

    pieces: Sequence[tuple[TextToken, int]]  # each with its start
    warnings: Sequence[str]


def scan(text: str, setting: ParserContext) -> ScannedText:
    """Cut a normalized text into tokens."""
    scanner = _Scanner(text, setting)
    for match in _pattern(setting.squads, tuple(setting.shifts)).finditer(text):
        scanner.take(match)
    return ScannedText(scanner.pieces, scanner.warnings)


class _Scanner:
    """The state of a scan: the text and the tokens so far."""

    def __init__(self, text: str, setting: ParserContext) -> None:
        self.pieces: list[tuple[TextToken, int]] = []
        self.warnings: list[str] = []
        self._text = text
        self._setting = setting
        self._last_day: DayMention | None = None

    def take(self, match: re.Match[str]) -> None:
        kind = match.lastgroup or ""
        for piece in self._pieces(kind, match):
            if isinstance(piece, DayMention):
                piece = self._last_day = day_phrases.in_order(piece, self._last_day)  # noqa: PLW2901
            self.pieces.append((piece, match.start()))

    def _pieces(self, kind: str, match: re.Match[str]) -> Sequence[TextToken]:
        written = match.group()
        if kind in _DAY_KINDS:
            return self._days(kind, written)
        if kind.startswith("act"):
            return [PHRASES[int(kind[3:])].act._replace(written=written)]
        if kind.startswith("mark"):
            return [Marked(_MARKS[int(kind[4:])][0], written)]
        return self._MAKERS[kind](self, written, match)

    def _days(self, kind: str, written: str) -> Sequence[TextToken]:
        shifts = self._setting.shifts
        found = day_phrases.days_of(kind, written, self._setting.now, shifts["night"], shifts["all day"])
        if found is None:
            self.warnings.append(f"{written.strip()!r} is not a valid date")
            return []
        return found

    def _squad(self, written: str, match: re.Match[str]) -> Sequence[TextToken]:
        name = re.sub(r".*\D(?=\d)|^#", "", written) if written not in self._setting.squads else written
        if name not in self._setting.squads and written.startswith(("station", "rescue")):
            return self._foreign(written, match)
        return self._named(name, match.start())

    def _foreign(self, written: str, match: re.Match[str]) -> Sequence[TextToken]:
        """Mark a unit that is not a squad, such as "engine 7"."""
        return [Word(written), Marked(Mark.FOREIGN, written)]

    def _named(self, name: str, start: int) -> Sequence[TextToken]:
        """Return a squad, known or not: an unknown one must not become the sender's own."""
        if name not in self._setting.squads:
            known = ", ".join(self._setting.squads)
            self.warnings.append(f"there is no squad {name}; the squads are {known}")
        return [SquadMention(name, is_place=self._before(start) in {"in", "on"})]

    def _before(self, start: int) -> str:
        return (self._text[:start].split() or [""])[-1]

    def _shift(self, written: str, match: re.Match[str]) -> Sequence[TextToken]:
        bare = re.sub(r"^(?:the|during the|during) | (?:shifts?|crew|time)$", "", written)
        shift = self._setting.shifts.get(bare) or self._setting.shifts[bare.removesuffix("s")]
        if shift.name == "day" and not self._is_day_shift(written, match):
            return [Word(written)]
        return [shift]

    def _is_day_shift(self, written: str, match: re.Match[str]) -> bool:
        """Return whether "day" is a shift: after a day or an article, but not in "long day"."""
        last = self.pieces[-1][0] if self.pieces else None
        if written == "days":
            return self._before(match.start()) not in _COUNTING and not _NO_SHIFT.match(self._text, match.end())
        at_start = last is None or isinstance(last, Marked)
        return written not in {"day", "days"} or at_start or isinstance(last, DayMention | Shift | Act)

    def _clock(self, written: str, match: re.Match[str]) -> Sequence[TextToken]:
        kind, value = match.lastgroup, match.group(match.lastgroup or 0)
        if kind == "worded":
            return [ClockTime(0 if "midnight" in value else 720, ClockFormat.EXACT, written)]
        if kind == "halved":
            return [ClockTime(_halved(value), ClockFormat.EXACT, written)]
        digits = value.replace(":", "").zfill(4) if ":" in value or kind == "military" else f"{value.zfill(2)}00"
        at = int(digits[:2]) % 24 * 60 + int(digits[2:])
        if kind == "military":
            return [ClockTime(at, ClockFormat.EXACT, written, digits=True)]
        if value.isdigit() and self._is_squad(int(value), match):
            return self._named(value, match.start())
        return self._bare(written, value, at, match.end())

    def _is_squad(self, number: int, match: re.Match[str]) -> bool:
        """Return whether a number is a squad: it does something, or something is done for it."""
        before = self._before(match.start())
        is_range = before.endswith("-")
        if _DOES.match(self._text, match.end()) and before not in _BEFORE_TIMES and not is_range:
            return True
        comes_after = before in _BEFORE_SQUADS or (before == "on" and number > _LAST_DAY)
        return number > 24 and comes_after and not _COUNTED.match(self._text, match.end())

    def _bare(self, written: str, value: str, at: int, end: int) -> Sequence[TextToken]:
        hour = int(value.partition(":")[0])
        if hour > 24 or _COUNTED.match(self._text, end):
            return [Word(written)]
        if hour == 0 or hour > 12 or value.startswith("0"):
            return [ClockTime(at, ClockFormat.EXACT, written)]
        part = _PART_OF_DAY.search(written)
        if not part:
            return [ClockTime(at % 720, ClockFormat.BARE, written)]
        is_late = part[1] in {"afternoon", "evening"} or (part[1] == "night" and at % 720 >= 300)
        return [ClockTime(at % 720 + (720 if is_late else 0), ClockFormat.EXACT, written)]

    def _is_in_range(self, match: re.Match[str]) -> bool:
        """Return whether four digits are next to four others: "2500-2600"."""
        before, after = _RANGED_BEFORE.search(self._text[: match.start()]), match.end()
        return before is not None or _RANGED_AFTER.match(self._text, after) is not None

    def _sign(self, written: str, match: re.Match[str]) -> Sequence[TextToken]:
        sign = written.strip(" ")
        mark = {"?": Mark.ASKED, ",": Mark.COMMA, "-": Mark.DASH, "/": Mark.DASH, **_PAUSES}.get(sign[:1], Mark.STOP)
        return [Marked(Mark.ASKED if "?" in sign else mark, sign)]

    def _word(self, written: str, match: re.Match[str]) -> Sequence[TextToken]:
        if len(written) == 4 and written.isdigit() and self._is_in_range(match):
            self.warnings.append(f"{written} is not a time of day")
        return [Word(written, is_filler=written in _FILLERS)]

    _MAKERS: Mapping[str, Callable[[_Scanner, str, re.Match[str]], Sequence[TextToken]]] = {
        "squad": _squad,
        "foreign": _foreign,
        "shift": _shift,
        "military": _clock,
        "halved": _clock,
        "worded": _clock,
        "bare": _clock,
        "sign": _sign,
        "word": _word,
    }


def _halved(value: str) -> int:
    digits = re.sub(r"[^\d]", "", value)
    hour, minute = (int(digits[:-2]), int(digits[-2:])) if len(digits) > 2 else (int(digits), 0)
    return hour % 12 * 60 + minute + (720 if "p" in value else 0)


_DAY_KINDS = frozenset(kind for kind, _ in day_phrases.PATTERNS)


@lru_cache(maxsize=64)
def _pattern(squads: tuple[str, ...], shifts: tuple[str, ...]) -> re.Pattern[str]:
    """Build one expression of all tokens; the first match wins."""
    names = "|".join(re.escape(name) for name in sorted(squads, key=len, reverse=True)) or r"(?!)"
    hours = "|".join(re.escape(name) for name in sorted(shifts, key=len, reverse=True))
    parts = [
        *(f"(?P<act{i}>{phrase.pattern})" + r"\b" for i, phrase in enumerate(PHRASES)),
        *(pattern for _, pattern in day_phrases.PATTERNS),
        rf"(?P<foreign>(?:{_FOREIGN})(?: company)? #?\d{{1,3}})\b",
        rf"(?P<squad>(?:squads?|sq|station|rescue|#) ?#?\d{{1,3}}|(?:{names})(?!:\d|-?\d| ?[ap]m?\b| ?%))\b",
        rf"(?P<shift>(?:(?:during )?the )?(?:{hours})s?"
        r"(?: shifts?| crew(?! ?(?:[.,;!\n]|$)| (?:for|is|are|fell|bailed|backed|called|cancel))| time)?)\b",
        *_CLOCKS,
        *(f"(?P<mark{i}>{pattern})" + r"\b" for i, (_, pattern) in enumerate(_MARKS)),
    ]
    joined = "|".join(parts)
    return re.compile(
        rf"(?<![\w'])(?:{joined})|(?P<sign>[.!?;\n]+|,|[-/](?=[ \w])|[:()])"
        r"|(?P<word>[^\W\d_]+(?:'[a-z]+)?|\d+)"
    )
